// Linked into every test program, so that each holds the whole library's declarations in at least two units.
#include <dflow/dflow.hpp>
