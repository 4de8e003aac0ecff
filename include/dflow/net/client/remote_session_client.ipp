#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/client/thin_client.ipp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/net/tasks/peers.hpp>
#include <dflow/session/target.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::net {

struct RemoteMaster::State {
  detail::ThinClient client;
  std::string master;
  std::vector<std::string> filters;
  std::shared_ptr<FileSystem> files;

  /// A request to the master, which may have to be started yet. Blocks. Returns the reply.
  std::string call(Method method, std::string body) const {
    std::string reply;
    detail::wait_for_status(nullptr, [&](auto done) {
      const Clock::time_point deadline = client.clock->after(client.startup_timeout);
      client.peers->connect(
          master, Channel::control, deadline,
          [&reply, method, body = std::move(body), done](Status status, const std::shared_ptr<Connection>& connection) {
            if (!status.ok()) return done(std::move(status));
            connection->call(detail::make_call(method, body), [&reply, done](Status replied, std::string said) {
              reply = std::move(said);
              done(std::move(replied));
            });
          });
    });
    return reply;
  }
};

namespace detail {

/// A session on its client's side: the nodes of its graph, and how many of them the master has.
class RemoteSessionClient : public std::enable_shared_from_this<RemoteSessionClient> {
 public:
  using Ready = UniqueFunction<void(Status, std::shared_ptr<Connection>)>;

  /// The deadlines of its steps are times of `clock`.
  RemoteSessionClient(std::shared_ptr<RemoteMaster::State> state, CreateSession create, std::shared_ptr<Clock> clock)
      : state_(std::move(state)), create_(std::move(create)), clock_(std::move(clock)) {}

  /// Uses the present connection. The session still exists if the master had not lost the session's first connection
  /// when the present one took its place.
  ~RemoteSessionClient() {
    if (!is_there_) return;
    const std::shared_ptr<Connection> connection = state_->client.peers->find(state_->master, Channel::control);
    if (connection != nullptr && connection->peer().incarnation == incarnation_) end_there(*connection, number_);
  }

  /// Notes the nodes that the graph has grown by. Returns how many nodes it has.
  std::size_t describe(const GraphStore& graph) {
    const std::lock_guard lock(mutex_);
    const std::size_t first = nodes_.size();
    if (graph.size() == first) return first;
    GraphDef grown = to_graph_def(graph, first);
    seed_ = grown.seed;
    for (NodeDef& node : grown.nodes) {
      const Node& described = graph.node(NodeId(nodes_.size()));
      if (described.where.line() != 0) where_.try_emplace(node.name, described.where);
      nodes_.push_back(std::move(node));
    }
    return nodes_.size();
  }

  /// Calls `done` with a connection over which the master has been told the first `count` nodes. It may be opened until
  /// `until`, else at one attempt. Errors: the master's; Unavailable; Aborted if it has been started anew.
  void prepare(std::size_t count, Clock::time_point until, Ready done) {
    Peers& peers = *state_->client.peers;
    if (const std::shared_ptr<Connection> open = peers.find(state_->master, Channel::control)) {
      return prepare_on(open, count, std::move(done));
    }
    peers.connect(state_->master, Channel::control, until,
                  [self = shared_from_this(), count, done = std::move(done)](
                      Status status, std::shared_ptr<Connection> connection) mutable {
                    if (!status.ok()) return done(std::move(status), nullptr);
                    self->prepare_on(connection, count, std::move(done));
                  });
  }

  /// The master may have forgotten session `number` with an earlier connection: the next step makes it anew.
  void make_again(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (number_ == number && is_there_ && sending_ == nullptr) connection_.reset(), is_there_ = false;
  }
  /// Its number there. Precondition: it was prepared.
  std::uint64_t number() const {
    const std::lock_guard lock(mutex_);
    return number_;
  }
  Clock& clock() const noexcept { return *clock_; }
  const std::string& master() const noexcept { return state_->master; }

  /// The name may be of several nodes that passes have made one.
  Status explain(const Status& status) const {
    if (status.ok() || status.node().empty() || status.where().line() != 0) return status;
    std::string_view names = status.node();
    const std::lock_guard lock(mutex_);
    while (!names.empty()) {
      const std::size_t end = names.find(" + ");
      const auto found = where_.find(std::string(names.substr(0, end)));
      if (found != where_.end()) return status.with_location(found->second);
      names = end == std::string_view::npos ? std::string_view() : names.substr(end + 3);
    }
    return status;
  }

 private:
  struct Waiting {
    std::size_t count;
    Ready done;
  };
  /// A part of the graph that is on its way.
  struct Sending {
    std::vector<Waiting> waiting;

    void add(std::size_t count, Ready& done) {
      if (waiting.size() == waiting.capacity()) waiting.reserve(2 * waiting.size() + 1);
      waiting.push_back({count, std::exchange(done, nullptr)});
    }
  };

  static void end_there(Connection& connection, std::uint64_t number) {
    connection.call(make_call(Method::end_session, to_body(ShareName{number, 0})),
                    [](const Status&, const std::string&) {});
  }

  void prepare_on(const std::shared_ptr<Connection>& connection, std::size_t count, Ready done) {
    try {
      try_prepare_on(connection, count, done);
    } catch (...) {
      if (done) done(status_of_current_exception(), nullptr);
    }
  }

  /// Takes `done` where somebody else calls it.
  void try_prepare_on(const std::shared_ptr<Connection>& connection, std::size_t count, Ready& done) {
    Status refused;
    bool is_ready = false, is_extended = false;
    std::shared_ptr<Sending> begun;
    std::size_t first = 0, end = 0;
    SessionVersion extended;
    std::optional<std::uint64_t> replaced;
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t incarnation = connection->peer().incarnation;
      if (incarnation_ == 0) incarnation_ = incarnation;
      if (incarnation != incarnation_) {
        refused = Status::aborted(str_cat(master(), " has been started anew: sessions with it must be made anew"))
                      .with_task(master());
      } else {
        if (connection_.lock() != connection) {
          if (is_there_) replaced = number_;
          connection_ = connection;
          sending_ = nullptr;
          is_there_ = false;
          num_sent_ = 0;
        }
        is_ready = is_there_ && num_sent_ >= count;
        if (!is_ready) {
          if (sending_ == nullptr) begun = std::make_shared<Sending>();
          (sending_ == nullptr ? begun : sending_)->add(count, done);
        }
        if (begun != nullptr) {
          sending_ = begun;
          first = num_sent_;
          end = nodes_.size();
          is_extended = is_there_;
          extended = {number_, version_};
        }
      }
    }
    if (!refused.ok()) return done(std::move(refused), nullptr);
    if (is_ready) return done({}, connection);
    // It may be there yet, if the master has not lost the earlier connection.
    if (replaced) detail::tell([&] { end_there(*connection, *replaced); });
    if (begun == nullptr) return;
    try {
      Call call = is_extended ? make_call(Method::extend_session, to_body(extended))
                              : make_call(Method::create_session, to_body(create_));
      auto written = std::make_shared<const std::string>(write_nodes(first, end));
      call.message.payload.parts.push_back(as_byte_span(*written));
      call.message.payload.owner = std::move(written);
      connection->call(std::move(call),
                       [self = shared_from_this(), connection, begun, end](Status status, const std::string& body) {
                         self->finish_sending(begun, connection, end, status.with_task(self->master()), body);
                       });
    } catch (...) {
      finish_sending(begun, connection, end, status_of_current_exception(), {});
    }
  }

  std::string write_nodes(std::size_t first, std::size_t end) const {
    GraphDef def;
    {
      const std::lock_guard lock(mutex_);
      def.seed = seed_;
      def.nodes.assign(nodes_.begin() + static_cast<std::ptrdiff_t>(first),
                       nodes_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    return to_binary(def);
  }

  /// A caller that wants more nodes than were sent by then begins the next sending.
  void finish_sending(const std::shared_ptr<Sending>& sending, const std::shared_ptr<Connection>& connection,
                      std::size_t end, Status status, const std::string& body) {
    SessionVersion now;
    try {
      if (status.ok()) now = from_body<SessionVersion>(body);
    } catch (...) {
      status = status_of_current_exception();
    }
    std::vector<Waiting> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(sending->waiting);
      if (sending_ == sending) {
        sending_ = nullptr;
        if (status.ok()) {
          is_there_ = true;
          number_ = now.session;
          version_ = now.version;
          num_sent_ = end;
        } else if (status.code() != Code::invalid_argument) {
          connection_.reset();  // the master's part of it is unknown: the next step makes it anew
        }
      }
    }
    for (Waiting& one : waiting) {
      if (status.ok()) {
        prepare_on(connection, one.count, std::move(one.done));
      } else {
        one.done(status, nullptr);
      }
    }
  }

  const std::shared_ptr<RemoteMaster::State> state_;
  const CreateSession create_;
  const std::shared_ptr<Clock> clock_;
  mutable std::mutex mutex_;  ///< guards the members below
  std::vector<NodeDef> nodes_;
  std::uint64_t seed_ = 0;
  std::unordered_map<std::string, SourceLocation> where_;
  std::weak_ptr<Connection> connection_;  ///< that the rest is about
  std::uint64_t incarnation_ = 0;         ///< of the master that the session was made with
  bool is_there_ = false;
  std::uint64_t number_ = 0;
  std::uint64_t version_ = 0;
  std::size_t num_sent_ = 0;
  std::shared_ptr<Sending> sending_;
};

/// A step that a client asks the master to run.
struct RemoteStepRequest {
  std::shared_ptr<RemoteSessionClient> session;
  std::size_t num_nodes = 0;  ///< of the graph that it is a step of
  RemoteSession::StepNames names;
};

}  // namespace detail

}  // namespace dflow::net
