#pragma once

#include <dflow/core/resource.hpp>

#include <map>
#include <mutex>

namespace dflow {

Resource::~Resource() = default;

struct ResourceContainer::State {
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<Resource>, std::less<>> resources;
};

ResourceContainer::ResourceContainer(std::string name) : name_(std::move(name)), state_(std::make_unique<State>()) {}
ResourceContainer::~ResourceContainer() = default;

std::shared_ptr<Resource> ResourceContainer::find_if_exists(std::string_view name) const {
  std::lock_guard lock(state_->mutex);
  const auto at = state_->resources.find(name);
  return at == state_->resources.end() ? nullptr : at->second;
}

std::shared_ptr<Resource> ResourceContainer::find(std::string_view name) const {
  std::shared_ptr<Resource> found = find_if_exists(name);
  if (found == nullptr) {
    throw_error(Status::not_found(str_cat("there is no resource '", name, "' in container '", name_, "'")));
  }
  return found;
}

std::shared_ptr<Resource> ResourceContainer::find_or_make(std::string_view name, Make& make) {
  std::lock_guard lock(state_->mutex);
  const auto at = state_->resources.lower_bound(name);
  if (at != state_->resources.end() && at->first == name) return at->second;
  if (name.empty()) throw_error(Status::invalid_argument("a resource must have a name"));
  std::shared_ptr<Resource> made = make();
  if (made == nullptr) throw_error(Status::internal(str_cat("the factory of resource '", name, "' made nothing")));
  state_->resources.emplace_hint(at, std::string(name), made);
  return made;
}

void ResourceContainer::insert(std::string_view name, std::shared_ptr<Resource> resource) {
  if (name.empty()) throw_error(Status::invalid_argument("a resource must have a name"));
  if (resource == nullptr) throw_error(Status::invalid_argument(str_cat("resource '", name, "' is null")));
  std::lock_guard lock(state_->mutex);
  if (!state_->resources.try_emplace(std::string(name), std::move(resource)).second) {
    throw_error(Status::already_exists(str_cat("container '", name_, "' has a resource '", name, "' already")));
  }
}

// A resource's destructor runs without the lock: it may take a while or use another container.

std::shared_ptr<Resource> ResourceContainer::take(std::string_view name) {
  std::lock_guard lock(state_->mutex);
  const auto at = state_->resources.find(name);
  if (at == state_->resources.end()) return nullptr;
  std::shared_ptr<Resource> taken = std::move(at->second);
  state_->resources.erase(at);
  generation_.fetch_add(1, std::memory_order_release);
  return taken;
}

std::map<std::string, std::shared_ptr<Resource>, std::less<>> ResourceContainer::take_all() {
  std::lock_guard lock(state_->mutex);
  generation_.fetch_add(1, std::memory_order_release);
  return std::exchange(state_->resources, {});
}

bool ResourceContainer::remove(std::string_view name) { return take(name) != nullptr; }

void ResourceContainer::clear() { take_all(); }

std::size_t ResourceContainer::size() const {
  std::lock_guard lock(state_->mutex);
  return state_->resources.size();
}

std::vector<std::string> ResourceContainer::names() const {
  std::vector<std::string> names;
  std::lock_guard lock(state_->mutex);
  names.reserve(state_->resources.size());
  for (const auto& [name, resource] : state_->resources) names.push_back(name);
  return names;
}

void ResourceContainer::throw_wrong_type(std::string_view name, const Resource& held, std::string_view wanted) {
  throw_error(Status::invalid_argument(
      str_cat("resource '", name, "' is ", held.debug_string(), ", ", wanted, " was asked for")));
}

struct ResourceContainers::State {
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<ResourceContainer>, std::less<>> containers;
};

ResourceContainers::ResourceContainers() : state_(std::make_unique<State>()) {}
ResourceContainers::~ResourceContainers() = default;

std::shared_ptr<ResourceContainer> ResourceContainers::container(std::string_view name) {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->containers.lower_bound(name);
  if (at != state_->containers.end() && at->first == name) return at->second;
  auto made = std::make_shared<ResourceContainer>(std::string(name));
  state_->containers.emplace_hint(at, std::string(name), made);
  return made;
}

std::vector<std::string> ResourceContainers::names() const {
  std::vector<std::string> names;
  const std::lock_guard lock(state_->mutex);
  names.reserve(state_->containers.size());
  for (const auto& [name, container] : state_->containers) names.push_back(name);
  return names;
}

bool ResourceContainers::reset(std::string_view name) {
  std::shared_ptr<ResourceContainer> found;
  {
    const std::lock_guard lock(state_->mutex);
    const auto at = state_->containers.find(name);
    if (at == state_->containers.end()) return false;
    found = at->second;
  }
  found->clear();
  return true;
}

void ResourceContainers::clear() {
  for (const std::string& name : names()) reset(name);
}

}  // namespace dflow
