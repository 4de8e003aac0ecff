#include <dflow/op/import.ipp>
#include <dflow/op/merge.ipp>
