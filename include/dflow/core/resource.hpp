#pragma once

/// Public: resources, which outlive a step in a container of a device.

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
/// Thread safety: several steps may use a resource at the same time, so each class guards its own state.
class Resource {
 public:
  virtual ~Resource();
  Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;

  /// A description for messages: "Variable(float[784,10])". Callable from any thread.
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

  /// Errors: NotFound if there is no resource of that name; InvalidArgument that names both types if it is not an R.
  template <ResourceType R>
  std::shared_ptr<R> lookup(std::string_view name) const {
    return cast<R>(name, find(name));
  }

  /// Null if there is no resource of that name. Errors: InvalidArgument as for `lookup`.
  template <ResourceType R>
  std::shared_ptr<R> lookup_if_exists(std::string_view name) const {
    std::shared_ptr<Resource> found = find_if_exists(name);
    return found == nullptr ? nullptr : cast<R>(name, std::move(found));
  }

  /// The resource of that name, or a new one from `factory()`, which returns a std::shared_ptr<R>. With any number of
  /// threads, the factory is called at most once at a time and its first result stays. It runs under the container's
  /// lock and must not use the container.
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
  /// Removes the resource and returns it: null if there was none. If several threads take a resource, one of them gets
  /// it. A new resource that another thread makes under the name stays.
  std::shared_ptr<Resource> take(std::string_view name);
  /// Removes all resources that the container holds at one moment, and returns them by name.
  std::map<std::string, std::shared_ptr<Resource>, std::less<>> take_all();
  /// False if there was none. Holders of the pointer keep the resource.
  bool remove(std::string_view name);
  void clear();
  /// A number that changes after each resource that was taken or removed. A caller that keeps a found resource looks it
  /// up again after a change: otherwise the caller may go on alone with a resource that others no longer find. Costs
  /// one load.
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

/// A device's containers by name: two different names, of any characters, are two containers. A container is made at
/// its first use and stays. A reset empties it, and all holders go on with the same container.
///
/// Thread safety: all functions may be called from any thread.
class ResourceContainers {
 public:
  ResourceContainers();
  ~ResourceContainers();
  ResourceContainers(const ResourceContainers&) = delete;
  ResourceContainers& operator=(const ResourceContainers&) = delete;

  /// The container of that name; "" is the container of resources that name none.
  std::shared_ptr<ResourceContainer> container(std::string_view name = {});
  /// The names of the containers that have been made, sorted.
  std::vector<std::string> names() const;
  /// Drops the resources of one container; false if it has not been made yet. Running steps keep the resources that
  /// they hold; later steps find the container empty.
  bool reset(std::string_view name);
  /// Drops the resources of all containers.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dflow
