// What most test units read: Catch2 and the library's headers.
#pragma once

#include "catch.hpp"

#include <dflow/dflow.hpp>
