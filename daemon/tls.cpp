#include "daemon/tls.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <utility>

#include "pipeline/input_file.h"

namespace patternd {
namespace {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

BioPtr memory_of(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// No terminal is asked for a passphrase.
int no_passphrase(char*, int, int, void*) { return -1; }

X509Ptr next_certificate(BIO* pem) {
  return X509Ptr(PEM_read_bio_X509(pem, nullptr, no_passphrase, nullptr));
}

tl::unexpected<Error> out_of_memory() {
  return fail(ErrorCode::kExhausted, "OpenSSL cannot set up TLS: no memory is left");
}

}  // namespace

Result<std::string> read_credential(const std::string& path, bool secret) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  const auto file = InputFile::open(path);
  if (!file) return tl::make_unexpected(file.error());
  if (secret && (file->permissions() & S_IRWXO) != 0) {
    return fail(
        ErrorCode::kInvalidArgument,
        path + " is open to every user of this machine; take that away with chmod o= " + path);
  }
  const auto content = file->read(kMostBytes);
  if (!content) return tl::make_unexpected(content.error());
  return std::string(content->begin(), content->end());
}

Result<std::shared_ptr<TlsContext>> TlsContext::create(Side side) {
  // The system's openssl.cnf belongs to the system's OpenSSL, which need not be ours.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  SSL_CTX* context = SSL_CTX_new(side == Side::kServer ? TLS_server_method() : TLS_client_method());
  if (context == nullptr) return out_of_memory();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Each connection proves itself anew; no tickets are written to clients that don't read.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  return std::shared_ptr<TlsContext>(new TlsContext(context));
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<void> TlsContext::use_certificate(const std::string& path) {
  const auto text = read_credential(path, false);
  if (!text) return tl::make_unexpected(text.error());
  const BioPtr pem = memory_of(*text);
  const X509Ptr own = next_certificate(pem.get());
  if (own == nullptr || SSL_CTX_use_certificate(context_, own.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::kInvalidArgument, path + " holds no certificate in PEM form");
  }
  SSL_CTX_clear_chain_certs(context_);
  while (const X509Ptr next = next_certificate(pem.get()))
    SSL_CTX_add1_chain_cert(context_, next.get());
  ERR_clear_error();
  return {};
}

Result<void> TlsContext::use_key(const std::string& path) {
  const auto text = read_credential(path, true);
  if (!text) return tl::make_unexpected(text.error());
  const KeyPtr key(
      PEM_read_bio_PrivateKey(memory_of(*text).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                path + " holds no private key in PEM form without a passphrase");
  }
  if (SSL_CTX_use_PrivateKey(context_, key.get()) == 1) return {};
  ERR_clear_error();
  return fail(ErrorCode::kInvalidArgument, path + " is not the key of the certificate beside it");
}

Result<void> TlsContext::require_peer(const std::string& authorities_path) {
  const auto text = read_credential(authorities_path, false);
  if (!text) return tl::make_unexpected(text.error());
  const BioPtr pem = memory_of(*text);
  int count = 0;
  while (const X509Ptr authority = next_certificate(pem.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), authority.get());
    SSL_CTX_add_client_CA(context_, authority.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0) {
    return fail(ErrorCode::kInvalidArgument,
                authorities_path + " holds no certificate in PEM form");
  }
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

// OpenSSL's own way to a socket would raise SIGPIPE and block where the socket may.
struct TlsSession::Wire {
  int fd = -1;
  bool ended = false;
  bool heard = false;
  int error = 0;  // errno's value of the call that failed last, other than for want of room

  static int write(BIO* bio, const char* data, int size);
  static int read(BIO* bio, char* data, int size);
  static long control(BIO* bio, int command, long, void*);
  static const BIO_METHOD* method();
};

int TlsSession::Wire::write(BIO* bio, const char* data, int size) {
  auto* wire = static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(wire->fd, data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_write(bio);
  else if (sent < 0)
    wire->error = errno;
  return static_cast<int>(sent);
}

int TlsSession::Wire::read(BIO* bio, char* data, int size) {
  auto* wire = static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(wire->fd, data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_read(bio);
  else if (got < 0)
    wire->error = errno;
  if (got == 0) wire->ended = true;
  if (got > 0) wire->heard = true;
  return static_cast<int>(got);
}

long TlsSession::Wire::control(BIO* bio, int command, long, void*) {
  const auto* wire = static_cast<const Wire*>(BIO_get_data(bio));
  if (command == BIO_CTRL_EOF) return wire->ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* TlsSession::Wire::method() {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "patternd");
    BIO_meth_set_write(method, write);
    BIO_meth_set_read(method, read);
    BIO_meth_set_ctrl(method, control);
    return method;
  }();
  return made;
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, std::unique_ptr<Wire> wire,
                       ssl_st* ssl)
    : context_(std::move(context)), wire_(std::move(wire)), ssl_(ssl) {}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
  ERR_clear_error();
}

Result<std::unique_ptr<TlsSession>> TlsSession::create(
    const std::shared_ptr<const TlsContext>& context, int socket_fd, const std::string& host) {
  SSL* ssl = SSL_new(context->context_);
  if (ssl == nullptr) return out_of_memory();
  auto wire = std::make_unique<Wire>();
  wire->fd = socket_fd;
  Wire* raw = wire.get();
  std::unique_ptr<TlsSession> session(new TlsSession(context, std::move(wire), ssl));
  BIO* bio = BIO_new(Wire::method());
  if (bio == nullptr) return out_of_memory();
  BIO_set_data(bio, raw);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  if (SSL_is_server(ssl) != 0) {
    SSL_set_accept_state(ssl);
    return session;
  }
  SSL_set_connect_state(ssl);
  std::array<unsigned char, 16> ignored{};
  const bool literal = inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
                       inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
  if (literal) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
  } else {
    SSL_set1_host(ssl, host.c_str());
    // (OpenSSL's macro for it casts in the old style.)
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));
  }
  return session;
}

bool TlsSession::heard() const { return wire_->heard; }

namespace {

// What went wrong, as somebody who runs a service would say it.
std::string in_words(const SSL* ssl, unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
    switch (reason) {
      case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "it showed no certificate; it needs one that publish.tcp.tls.client_ca signed";
      case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return std::string("its certificate is not accepted (") +
               X509_verify_cert_error_string(SSL_get_verify_result(ssl)) +
               "); it must be valid and signed by the authority that is set here";
      case SSL_R_WRONG_VERSION_NUMBER:
      case SSL_R_HTTP_REQUEST:
      case SSL_R_UNEXPECTED_MESSAGE:
      case SSL_R_BAD_RECORD_TYPE:
        return "it does not speak TLS";
      case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "the other side wants a certificate of ours";
      case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the other side does not know the authority behind our certificate";
      default:
        break;
    }
  }
  const char* text = ERR_reason_error_string(error);
  return text != nullptr ? text : "the connection was cut";
}

}  // namespace

// errno's value for a result that is no success; 0 where the other side ended.
int TlsSession::fault(int result) {
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_ZERO_RETURN) return 0;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return EAGAIN;
  failure_ = in_words(ssl_, ERR_peek_error());
  ERR_clear_error();
  return wire_->error != 0 ? wire_->error : ECONNRESET;
}

TlsSession::Progress TlsSession::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) return Progress::kDone;
  if (fault(result) == EAGAIN) {
    return SSL_want_write(ssl_) ? Progress::kWantsWrite : Progress::kWantsRead;
  }
  if (failure_.empty()) failure_ = "it hung up during the handshake";
  return Progress::kFailed;
}

ssize_t TlsSession::read(void* data, std::size_t size) {
  ERR_clear_error();
  std::size_t got = 0;
  const int result = SSL_read_ex(ssl_, data, size, &got);
  if (result == 1) return static_cast<ssize_t>(got);
  errno = fault(result);
  return errno == 0 ? 0 : -1;
}

int TlsSession::flush() {
  while (pending_ > 0) {
    ERR_clear_error();
    std::size_t sent = 0;
    const int result = SSL_write_ex(ssl_, record_.data(), pending_, &sent);
    if (result != 1) {
      const int error = fault(result);
      errno = error == 0 ? EPIPE : error;
      return -1;
    }
    // (All of it, unless the client asked for smaller records.)
    pending_ -= sent;
    std::memmove(record_.data(), record_.data() + sent, pending_);
  }
  return 0;
}

ssize_t TlsSession::write(const iovec* parts, std::size_t count) {
  if (flush() != 0) return -1;
  for (std::size_t i = 0; i < count && pending_ < record_.size(); ++i) {
    const std::size_t part = std::min(parts[i].iov_len, record_.size() - pending_);
    std::memcpy(record_.data() + pending_, parts[i].iov_base, part);
    pending_ += part;
  }
  const std::size_t taken = pending_;
  if (flush() != 0 && errno != EAGAIN) return -1;
  return static_cast<ssize_t>(taken);
}

void TlsSession::finish() {
  if (SSL_in_init(ssl_) != 0) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace patternd
