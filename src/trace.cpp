#include <dflow/trace/chrome_trace.ipp>
