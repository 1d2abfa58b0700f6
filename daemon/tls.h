// TLS over sockets that never block, by OpenSSL. The only files that know OpenSSL's types.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <sys/uio.h>

#include "pipeline/result.h"

struct ssl_st;
struct ssl_ctx_st;

namespace patternd {

// Certificates and keys, shared by connections. TLS 1.2 and 1.3. Set up by one thread, then only
// read, by any.
class TlsContext {
 public:
  enum class Side { kServer, kClient };
  [[nodiscard]] static Result<std::shared_ptr<TlsContext>> create(Side side);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // PEM files. What this side shows: its certificate, those that lead to the authority behind it.
  // kIo or kInvalidArgument, with the file's name and the cure.
  [[nodiscard]] Result<void> use_certificate(const std::string& path);
  // The certificate's key, after it; without a passphrase, not readable by others.
  [[nodiscard]] Result<void> use_key(const std::string& path);
  // The other side must show a certificate that one of these authorities signed. A client's own
  // certificates are for TLS clients, a server's for servers.
  [[nodiscard]] Result<void> require_peer(const std::string& authorities_path);

 private:
  friend class TlsSession;
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

// One connection. Used by one thread at a time; the socket must live as long.
class TlsSession {
 public:
  // `host`: for a client, the name or address that the server's certificate must be for.
  [[nodiscard]] static Result<std::unique_ptr<TlsSession>> create(
      const std::shared_ptr<const TlsContext>& context, int socket_fd,
      const std::string& host = "");
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class Progress { kDone, kWantsRead, kWantsWrite, kFailed };
  // Goes on with the handshake as far as the socket allows.
  [[nodiscard]] Progress handshake();
  // After kFailed, or a failed read: why, in words that say what to do.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // The other side has sent anything at all.
  [[nodiscard]] bool heard() const;

  // As recv(2): 0 where the other side ended, -1 and EAGAIN or ECONNRESET. A buffer of 16 KiB or
  // more leaves nothing inside, so that the socket's readiness tells of more.
  [[nodiscard]] ssize_t read(void* data, std::size_t size);
  // As sendmsg(2), at most 16 KiB a call. What is taken but not yet in the socket is pending.
  [[nodiscard]] ssize_t write(const iovec* parts, std::size_t count);
  [[nodiscard]] bool has_pending() const { return pending_ > 0; }
  // Sends what is pending; -1 and errno where the socket does not take it.
  [[nodiscard]] int flush();
  // Tells the other side that nothing more comes.
  void finish();

 private:
  struct Wire;
  TlsSession(std::shared_ptr<const TlsContext> context, std::unique_ptr<Wire> wire, ssl_st* ssl);
  [[nodiscard]] int fault(int result);

  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<Wire> wire_;
  ssl_st* ssl_;
  std::string failure_;
  std::size_t pending_ = 0;
  std::array<char, 16384> record_;  // one TLS record's worth; what is pending stays as it was
};

// A small regular file's content. `secret`: refused where others may read it.
[[nodiscard]] Result<std::string> read_credential(const std::string& path, bool secret);

}  // namespace patternd
