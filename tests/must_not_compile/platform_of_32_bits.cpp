// flags: -m32
// expect: dflow needs a 64-bit platform
#include <dflow/base/config.hpp>  // which includes no header of the system: the 32-bit ones need not be installed
