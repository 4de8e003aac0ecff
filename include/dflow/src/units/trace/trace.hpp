#pragma once

/// Bodies of traces, event files and drawings.

#include <dflow/trace/chrome_trace.ipp>
#include <dflow/trace/dot.ipp>
#include <dflow/trace/drawing.ipp>
#include <dflow/trace/events/event.ipp>
#include <dflow/trace/events/event_file.ipp>
#include <dflow/trace/events/hyperparameters.ipp>
#include <dflow/trace/events/run_metadata.ipp>
#include <dflow/trace/events/tensorflow_graph.ipp>
