// The unit whose precompiled header all test programs share.
#include "catch.hpp"
