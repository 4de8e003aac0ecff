#include <dflow/trace/chrome_trace.ipp>
#include <dflow/trace/dot.ipp>
#include <dflow/trace/drawing.ipp>
