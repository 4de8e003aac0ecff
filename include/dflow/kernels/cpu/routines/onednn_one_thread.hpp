#pragma once

#include <dlfcn.h>

namespace dflow::cpu {

/// Keeps oneDNN, in the calling thread, from starting threads of its own, and gives the thread its setting back. The
/// OpenMP runtime of oneDNN is found in the process, so that this library need not link it. Without one (a oneDNN that
/// is sequential, or on a pool of its own) there is nothing to keep.
///
/// Thread safety: the setting is per thread.
class OnednnOneThread {
 public:
  OnednnOneThread() {
    if (openmp().set == nullptr || openmp().get == nullptr) return;
    before_ = openmp().get();
    if (before_ != 1) openmp().set(1);
  }
  ~OnednnOneThread() {
    if (before_ > 1) openmp().set(before_);
  }
  OnednnOneThread(const OnednnOneThread&) = delete;
  OnednnOneThread& operator=(const OnednnOneThread&) = delete;

 private:
  struct OpenMp {
    void (*set)(int);
    int (*get)();
  };
  static const OpenMp& openmp() {
    static const OpenMp found = {reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")),
                                 reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"))};
    return found;
  }

  int before_ = 1;
};

}  // namespace dflow::cpu
