#pragma once

/// Bodies of the ops of family send_recv.

#include <dflow/ops/send_recv/send_recv.ipp>
