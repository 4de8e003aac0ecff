#pragma once

#include <dflow/base/threads/wait_until.hpp>

#include <memory>

namespace dflow {

void detail::wait_until(ThreadPool& pool, Clock& clock, Clock::time_point time, const std::stop_token& stop) {
  const auto waiting = std::make_shared<FirstOfSeveral>();
  const TimerId timer = clock.schedule_at(time, [waiting] { waiting->come(); });
  const std::stop_callback stopped(stop, [waiting] { waiting->come(); });
  pool.wait(waiting->event);
  clock.cancel(timer);
}

}  // namespace dflow
