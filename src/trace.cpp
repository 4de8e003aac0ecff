#include <dflow/trace/chrome_trace.ipp>
#include <dflow/trace/dot.ipp>
#include <dflow/trace/drawing.ipp>
#include <dflow/trace/drawing_parts.ipp>
#include <dflow/trace/layered_layout.ipp>
#include <dflow/trace/svg.ipp>
