#pragma once

/// Bodies of models: a part of <dflow/src/models.hpp>.

#include <dflow/models/model.ipp>
#include <dflow/models/model_def.ipp>
#include <dflow/models/model_folder.ipp>
#include <dflow/models/models.ipp>
