#pragma once

/// Records of named features, as record files hold them: the floor below has them, since ops read them too.

#include <dflow/core/records/example.hpp>
