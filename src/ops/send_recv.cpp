#include <dflow/ops/send_recv/send_recv.ipp>
