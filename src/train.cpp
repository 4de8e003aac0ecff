#include <dflow/train/clip.ipp>
#include <dflow/train/initializers.ipp>
#include <dflow/train/layers.ipp>
#include <dflow/train/minibatches.ipp>
#include <dflow/train/optimizer.ipp>
#include <dflow/train/optimizers.ipp>
#include <dflow/train/progress.ipp>
#include <dflow/train/schedules.ipp>
