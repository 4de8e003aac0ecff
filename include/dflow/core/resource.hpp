#pragma once

/// Public: what outlives a step in a container of a device.

#include <dflow/base/status.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// State that kernels own across steps: a variable, a queue, a table.
///
/// Thread safety: several steps may use one at a time, so each class guards its own state.
class Resource {
 public:
  virtual ~Resource();
  Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  /// What it is, for messages: "Variable(float[784,10])". Callable from any thread.
  virtual std::string debug_string() const = 0;
};

template <class R>
concept ResourceType = std::derived_from<R, Resource>;

namespace detail {
/// "dflow::Variable", cut out of the compiler's name of this function.
template <class T>
constexpr std::string_view type_name() {
  const std::string_view function = __PRETTY_FUNCTION__;
  const std::size_t begin = function.find("T = ") + 4;
  return function.substr(begin, function.find_first_of(";]", begin) - begin);
}
}  // namespace detail

/// Resources by name. A container outlives the sessions that use it; a resource lives as long as the container or any
/// holder of its pointer.
///
/// Thread safety: all functions may be called from any thread. They block only on each other, for the time of a lookup.
class ResourceContainer {
 public:
  explicit ResourceContainer(std::string name = {});
  ~ResourceContainer();
  ResourceContainer(const ResourceContainer&) = delete;
  ResourceContainer& operator=(const ResourceContainer&) = delete;

  const std::string& name() const noexcept { return name_; }

  /// Errors: NotFound if there is none of that name; InvalidArgument if it is no R, naming both types.
  template <ResourceType R>
  std::shared_ptr<R> lookup(std::string_view name) const {
    return cast<R>(name, find(name));
  }

  /// Null if there is none of that name. Errors: InvalidArgument as for `lookup`.
  template <ResourceType R>
  std::shared_ptr<R> lookup_if_exists(std::string_view name) const {
    std::shared_ptr<Resource> found = find_if_exists(name);
    return found == nullptr ? nullptr : cast<R>(name, std::move(found));
  }

  /// What is there, or what `factory()` makes: a std::shared_ptr<R>. However many threads ask, it is called at most
  /// once at a time and its first result stays. It runs under the container's lock and must not use the container.
  template <ResourceType R, class Factory>
    requires std::is_invocable_r_v<std::shared_ptr<R>, Factory&>
  std::shared_ptr<R> lookup_or_create(std::string_view name, Factory&& factory) {
    struct Call final : Make {
      explicit Call(Factory& call) : call_(call) {}
      std::shared_ptr<Resource> operator()() override { return std::shared_ptr<R>(call_()); }
      Factory& call_;
    } make(factory);
    return cast<R>(name, find_or_make(name, make));
  }

  /// Errors: AlreadyExists; InvalidArgument for a null resource or an empty name.
  void insert(std::string_view name, std::shared_ptr<Resource> resource);
  /// Removes it and hands it out: null if there was none. Of many who take it one gets it, and what another one makes
  /// under its name stays.
  std::shared_ptr<Resource> take(std::string_view name);
  /// Removes all there are at one moment and hands them out, by name.
  std::map<std::string, std::shared_ptr<Resource>, std::less<>> take_all();
  /// False if there was none. Holders keep theirs.
  bool remove(std::string_view name);
  void clear();
  /// Another number after each resource that was taken or removed: who keeps what it found here looks again when this
  /// has changed, so as not to go on alone with a resource that the others no longer find. Costs one load.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  std::size_t size() const;
  /// The names, sorted.
  std::vector<std::string> names() const;

 private:
  struct State;
  struct Make {
    virtual std::shared_ptr<Resource> operator()() = 0;

   protected:
    ~Make() = default;
  };

  template <class R>
  static std::shared_ptr<R> cast(std::string_view name, std::shared_ptr<Resource> resource) {
    auto* wanted = dynamic_cast<R*>(resource.get());
    if (wanted == nullptr) throw_wrong_type(name, *resource, detail::type_name<R>());
    return std::shared_ptr<R>(std::move(resource), wanted);
  }
  [[noreturn]] static void throw_wrong_type(std::string_view name, const Resource& held, std::string_view wanted);

  std::shared_ptr<Resource> find(std::string_view name) const;
  std::shared_ptr<Resource> find_if_exists(std::string_view name) const;
  std::shared_ptr<Resource> find_or_make(std::string_view name, Make& make);

  std::string name_;
  std::unique_ptr<State> state_;
  std::atomic<std::uint64_t> generation_{0};
};

/// A device's containers by name: two names are two containers, whatever characters they hold. A container is made when
/// it is first asked for and stays, empty after a reset: whoever holds it goes on with the same one as all others.
///
/// Thread safety: all functions may be called from any thread.
class ResourceContainers {
 public:
  ResourceContainers();
  ~ResourceContainers();
  ResourceContainers(const ResourceContainers&) = delete;
  ResourceContainers& operator=(const ResourceContainers&) = delete;

  /// The container of that name; "" is the one of resources that name none.
  std::shared_ptr<ResourceContainer> container(std::string_view name = {});
  /// The containers that have been asked for, sorted.
  std::vector<std::string> names() const;
  /// Drops the resources of one container; false if nobody has asked for it yet. Steps under way keep what they hold;
  /// later ones find the container empty.
  bool reset(std::string_view name);
  /// Drops the resources of all containers.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dflow
