#include <dflow/op/import.ipp>
