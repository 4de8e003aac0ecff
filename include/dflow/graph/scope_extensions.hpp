#pragma once

#include <concepts>
#include <memory>
#include <utility>
#include <vector>

namespace dflow {

/// Something that a floor above keeps in a scope of a graph. The graph hands it on to the scopes inside, and does not
/// look into it.
class ScopeExtension {
 public:
  virtual ~ScopeExtension() = default;

 protected:
  ScopeExtension() = default;
  ScopeExtension(const ScopeExtension&) = default;
  ScopeExtension& operator=(const ScopeExtension&) = default;
};

/// The extensions of a scope, at most one of a type. A copy shares them.
///
/// Thread safety: a value type.
class ScopeExtensions {
 public:
  /// Null if there is none of that type.
  template <std::derived_from<ScopeExtension> T>
  std::shared_ptr<T> find() const noexcept {
    for (const std::shared_ptr<ScopeExtension>& each : all_) {
      if (std::shared_ptr<T> found = std::dynamic_pointer_cast<T>(each)) return found;
    }
    return nullptr;
  }
  /// Takes the place of the one of that type. Precondition: not null.
  template <std::derived_from<ScopeExtension> T>
  void set(std::shared_ptr<T> extension) {
    for (std::shared_ptr<ScopeExtension>& each : all_) {
      if (dynamic_cast<const T*>(each.get()) == nullptr) continue;
      each = std::move(extension);
      return;
    }
    all_.push_back(std::move(extension));
  }

 private:
  std::vector<std::shared_ptr<ScopeExtension>> all_;
};

}  // namespace dflow
