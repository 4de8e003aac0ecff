#pragma once

/// This header has moved to <dflow/trace/events/event_file.hpp>, and this place of it will go.

#include <dflow/trace/events/event_file.hpp>

#pragma message("<dflow/io/events/event_file.hpp> has moved: include <dflow/trace/events/event_file.hpp>")
