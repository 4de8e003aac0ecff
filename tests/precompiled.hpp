// Headers of most test units: Catch2 and the library's headers.
#pragma once

#include "catch.hpp"

#include <dflow/dflow.hpp>
