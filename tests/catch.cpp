// The unit with the precompiled header that all test programs share.
#include "catch.hpp"
