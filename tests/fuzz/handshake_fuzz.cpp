// Reads bytes as the peer's hello, as they are and in the place of parts of a sound hello, and the rest as its proof.
// A peer that does not know the secret is never let in.
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/handshake.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace dflow::net;

void require(bool condition) {
  if (!condition) std::abort();
}

Handshake::Options side(Role role, std::uint64_t seed) {
  Handshake::Options options;
  options.role = role;
  options.self = {"cluster", role == Role::connector ? "/job:a/replica:0/task:0" : "/job:b/replica:0/task:1", 3, 4};
  options.secret = "the secret";
  options.window_bytes = 1 << 20;
  options.random = [seed]() mutable { return seed++; };
  return options;
}

void take(Role role, std::string_view hello, std::string_view proof) {
  Handshake handshake(side(role, 1));
  try {
    static_cast<void>(handshake.take_hello(hello));
  } catch (const dflow::Error& error) {
    const dflow::Code code = error.code();
    require(code == dflow::Code::data_loss || code == dflow::Code::out_of_range ||
            code == dflow::Code::unauthenticated || code == dflow::Code::failed_precondition);
    return;
  }
  require(handshake.peer().to_bytes() == hello || hello.size() > handshake.peer().to_bytes().size());
  require(handshake.peer().self.cluster == "cluster" && handshake.peer().role != role);
  try {
    handshake.take_proof(proof);
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::unauthenticated);
    return;
  }
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes;
  if (size != 0) bytes.assign(reinterpret_cast<const char*>(data), size);
  for (const Role role : {Role::connector, Role::acceptor}) {
    const std::size_t split = size == 0 ? 0 : std::min<std::size_t>(data[0], size);
    take(role, bytes, std::string_view(bytes).substr(split));
    // A sound hello of the other role with the bytes laid over it, at a place that they choose.
    const Role other = role == Role::connector ? Role::acceptor : Role::connector;
    std::string hello = Handshake(side(other, 100)).hello();
    if (size >= 2) bytes.copy(hello.data() + data[1] % hello.size(), hello.size() - data[1] % hello.size(), 2);
    take(role, hello, std::string_view(bytes).substr(split));
  }
  return 0;
}
