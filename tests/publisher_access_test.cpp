// Who gets in, by network, token and TLS, and what becomes of those who don't.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

#include "tests/support/certificates.h"
#include "tests/support/publisher_fixture.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using test::kPatienceMs;

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

class PublisherAccess : public test::PublisherFixture {
 protected:
  PublisherAccess() : make_(folder_.path()) {
    make_.authority("plant");
    make_.signed_by("plant", "service");
    make_.signed_by("plant", "client");
  }
  static std::shared_ptr<Access> only(const char* network) {
    auto access = std::make_shared<Access>();
    access->allow.push_back(*parse_network(network));
    return access;
  }
  std::shared_ptr<Access> with_token() {
    auto access = std::make_shared<Access>();
    std::FILE* file = std::fopen(folder_.file("token").c_str(), "w");
    std::fputs(kSecret, file);
    std::fclose(file);
    EXPECT_EQ(chmod(folder_.file("token").c_str(), 0600), 0);
    access->token = *Token::load(folder_.file("token"));
    return access;
  }
  std::shared_ptr<Access> with_tls(bool wants_clients_certificate) {
    auto access = std::make_shared<Access>();
    const auto context = *TlsContext::create(TlsContext::Side::kServer);
    EXPECT_TRUE(context->use_certificate(make_.certificate("service")));
    EXPECT_TRUE(context->use_key(make_.key("service")));
    if (wants_clients_certificate) {
      access->client_authorities_file = make_.certificate("plant");
      EXPECT_TRUE(context->require_peer(access->client_authorities_file));
    }
    access->tls = context;
    return access;
  }
  // A client's side that trusts `authority` and shows `certificate`, where it is named.
  std::shared_ptr<const TlsContext> client_tls(const std::string& authority,
                                               const std::string& certificate) {
    const auto context = *TlsContext::create(TlsContext::Side::kClient);
    EXPECT_TRUE(context->require_peer(make_.certificate(authority)));
    if (!certificate.empty()) {
      EXPECT_TRUE(context->use_certificate(make_.certificate(certificate)));
      EXPECT_TRUE(context->use_key(make_.key(certificate)));
    }
    return context;
  }
  void set(const std::shared_ptr<Access>& access) {
    publisher_->set_access(access);
    publisher_->settle();
  }
  Result<ServiceClient> connect_tls(const std::string& authority, const std::string& certificate) {
    return ServiceClient::connect(publisher_->bound_addresses().at(0), kPatienceMs,
                                  client_tls(authority, certificate));
  }
  ServiceClient greeted_tls(const std::string& certificate) {
    auto client = connect_tls("plant", certificate);
    EXPECT_TRUE(client) << client.error().message;
    EXPECT_EQ(next(*client)["type"], "hello");
    return std::move(*client);
  }
  // Why a client that shows `certificate` gets nothing.
  std::string refusal(const std::string& authority, const std::string& certificate) {
    auto client = connect_tls(authority, certificate);
    if (!client) return client.error().message;
    const auto line = client->read_line(kPatienceMs);
    EXPECT_FALSE(line);
    return line ? *line : line.error().message;
  }
  FileDescriptor raw_connection() {
    FileDescriptor raw(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(publisher_->bound_addresses().at(0).port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(raw.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    return raw;
  }
  // Reads to the end that the service makes.
  static void wait_for_end(const FileDescriptor& raw) {
    char bytes[256];
    while (recv(raw.get(), bytes, sizeof bytes, 0) > 0) continue;
  }
  static std::string error_of(ServiceClient& client, const Json& command) {
    const auto reply = client.ask(command, kPatienceMs);
    EXPECT_FALSE(reply);
    return reply ? "" : reply.error().message;
  }

  const test::TemporaryFolder folder_;
  test::CertificateMaker make_;
};

TEST_F(PublisherAccess, LetsInWhomTheListHas) {
  start();
  set(only("127.0.0.0/8"));
  connect_and_greet();
  EXPECT_EQ(publisher_->counters().denied, 0U);
}

TEST_F(PublisherAccess, TurnsAwayAndCountsWhomTheListLacks) {
  start();
  set(only("10.0.0.0/8"));
  for (std::uint64_t i = 1; i < 4; ++i) {
    ServiceClient client = connect();
    const Json line = next(client);
    EXPECT_EQ(line["ok"], false);
    EXPECT_EQ(line["error"],
              "127.0.0.1 is not in publish.tcp.allow; add its network there and reload");
    EXPECT_FALSE(client.read_line(kPatienceMs));
    EXPECT_EQ(publisher_->counters().denied, i);
  }
  EXPECT_EQ(publisher_->counters().accepted, 0U);
}

TEST_F(PublisherAccess, FollowsListsThatChangeAndClosesWhomTheNewOneLacks) {
  start();
  ServiceClient client = connect_and_greet();
  set(only("10.0.0.0/8"));
  const Json line = next(client);
  EXPECT_EQ(line["error"], "127.0.0.1 is no longer in publish.tcp.allow");
  EXPECT_FALSE(client.read_line(kPatienceMs));
  ServiceClient denied = connect();
  EXPECT_EQ(next(denied)["ok"], false);
  set(only("127.0.0.1"));
  ServiceClient again = connect_and_greet();
  publish(1);
  EXPECT_EQ(next(again)["seq"], 1);
}

TEST_F(PublisherAccess, ListsSayNothingOfUnixSockets) {
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = folder_.file("p.sock");
  start({address});
  ServiceClient client = connect_and_greet();
  auto access = with_token();
  access->allow.push_back(*parse_network("10.0.0.0/8"));
  set(access);
  EXPECT_TRUE(client.ask({{"command", "reload"}}, kPatienceMs));
  connect_and_greet();
}

TEST_F(PublisherAccess, NeedsTheTokenForWhatChangesSomethingAlone) {
  start();
  set(with_token());
  ServiceClient client = connect_and_greet();
  EXPECT_TRUE(client.ask({{"command", "status"}}, kPatienceMs));
  EXPECT_TRUE(client.ask({{"command", "subscribe"}, {"every", 1}}, kPatienceMs));
  EXPECT_NE(error_of(client, {{"command", "reload"}}).find("needs a \"token\""), std::string::npos);
  EXPECT_NE(
      error_of(client, {{"command", "reload"}, {"token", "guess"}}).find("the token is wrong"),
      std::string::npos);
  EXPECT_NE(error_of(client, {{"command", "reload"}, {"token", 5}}).find("must be a string"),
            std::string::npos);
  EXPECT_EQ(publisher_->counters().wrong_tokens, 2U);
  EXPECT_TRUE(client.ask({{"command", "reload"}, {"token", kSecret}}, kPatienceMs));
  EXPECT_EQ(publisher_->counters().wrong_tokens, 2U);
}

TEST_F(PublisherAccess, HearsNoTokenAfterTenWrongOnesAndServesOn) {
  start();
  set(with_token());
  ServiceClient client = connect_and_greet();
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += "{\"command\":\"reload\",\"token\":\"guess\"}\n";
  lines += "{\"command\":\"reload\",\"token\":\"" + std::string(kSecret) + "\"}\n";
  ASSERT_TRUE(client.send_text(lines));
  for (int i = 0; i < 10; ++i)
    EXPECT_NE(next(client)["error"].get<std::string>().find("is wrong"), std::string::npos);
  EXPECT_NE(next(client)["error"].get<std::string>().find("too many failed attempts"),
            std::string::npos);
  EXPECT_EQ(publisher_->counters().wrong_tokens, 11U);
  EXPECT_TRUE(client.ask({{"command", "status"}}, kPatienceMs));
  publish(1);
  EXPECT_EQ(next(client)["seq"], 1);
}

TEST_F(PublisherAccess, ServesByTlsWhomItsAuthoritySigned) {
  start();
  set(with_tls(true));
  ServiceClient client = greeted_tls("client");
  for (std::uint64_t seq = 0; seq < 200; ++seq) {
    publish(seq);
    ASSERT_EQ(next(client)["seq"], seq);
  }
  EXPECT_TRUE(client.ask({{"command", "status"}}, kPatienceMs));
  EXPECT_TRUE(client.ask({{"command", "reload"}}, kPatienceMs));
  publisher_->finish(kPatienceMs);
  EXPECT_EQ(client.read_line(kPatienceMs).error().code, ErrorCode::kEndOfStream);
}

TEST_F(PublisherAccess, TurnsAwayByTlsWhomItsAuthorityDidNotSign) {
  make_.authority("stranger");
  make_.signed_by("stranger", "forged");
  make_.signed_by("plant", "expired", -1);
  start();
  set(with_tls(true));
  EXPECT_NE(refusal("plant", "").find("wants a certificate of ours"), std::string::npos);
  EXPECT_NE(refusal("plant", "forged").find("TLS failed"), std::string::npos);
  EXPECT_NE(refusal("plant", "expired").find("TLS failed"), std::string::npos);
  // And a client does not trust just any service.
  EXPECT_NE(refusal("stranger", "client").find("is not accepted"), std::string::npos);
  // (It hangs up by itself, and the service learns of that later.)
  while (publisher_->counters().failed_handshakes < 4)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(publisher_->counters().failed_handshakes, 4U);
  EXPECT_EQ(publisher_->counters().accepted, 0U);
  greeted_tls("client");
}

TEST_F(PublisherAccess, NeedsATokenByTlsWhereNoCertificateIsAskedFor) {
  start();
  auto access = with_tls(false);
  access->token = with_token()->token;
  set(access);
  ServiceClient client = greeted_tls("");
  EXPECT_NE(error_of(client, {{"command", "reload"}}).find("needs a \"token\""), std::string::npos);
  EXPECT_TRUE(client.ask({{"command", "reload"}, {"token", kSecret}}, kPatienceMs));
}

TEST_F(PublisherAccess, EndsWhoeverSpeaksNoTls) {
  start();
  set(with_tls(true));
  ServiceClient steady = greeted_tls("client");
  const std::string kinds[] = {"GET / HTTP/1.1\r\n\r\n", "{\"command\":\"reload\"}\n",
                               std::string(5000, '\xff'),
                               std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, 'x')};
  std::uint64_t seq = 0;
  for (const std::string& garbage : kinds) {
    const FileDescriptor raw = raw_connection();
    (void)send(raw.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    wait_for_end(raw);
    publish(seq);
    EXPECT_EQ(next(steady)["seq"], seq);
    ++seq;
  }
  EXPECT_EQ(publisher_->counters().failed_handshakes, 4U);
  EXPECT_EQ(publisher_->counters().clients, 1U);
}

TEST_F(PublisherAccess, BoundsHandshakesThatAreNeverFinishedAndTheirTime) {
  start();
  set(with_tls(true));
  // The head of a ClientHello that promises 512 bytes and brings four.
  const std::string half("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9);
  std::vector<FileDescriptor> halves;
  for (std::size_t i = 0; i < Publisher::kMaxHandshakes + 5; ++i) {
    halves.push_back(raw_connection());
    ASSERT_EQ(send(halves.back().get(), half.data(), half.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(half.size()));
  }
  // The oldest gave way, and whoever means it gets in.
  for (std::size_t i = 0; i < 5; ++i) wait_for_end(halves[i]);
  ServiceClient client = greeted_tls("client");
  publish(1);
  EXPECT_EQ(next(client)["seq"], 1);
  for (const FileDescriptor& each : halves) wait_for_end(each);  // within their 5 s
  EXPECT_EQ(publisher_->counters().failed_handshakes, halves.size());
  // So many failures from one address are held against it.
  EXPECT_FALSE(connect_tls("plant", "client"));
  EXPECT_GE(publisher_->counters().denied, 1U);
}

TEST_F(PublisherAccess, TellsASlowTlsClientWhatItLostToTheLine) {
  start();
  set(with_tls(true));
  ServiceClient slow = greeted_tls("client");
  constexpr std::uint64_t kCount = 12'000;
  for (std::uint64_t seq = 0; seq < kCount; ++seq) publish(seq);
  std::uint64_t got = 0;
  std::uint64_t lost = 0;
  while (got + lost < kCount) {
    const Json line = next(slow);
    if (line["type"] == "nothing") break;
    if (line["type"] == "dropped") {
      lost += line["count"].get<std::uint64_t>();
      continue;
    }
    ASSERT_EQ(line["seq"].get<std::uint64_t>(), got + lost);
    ++got;
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(got + lost, kCount);
}

TEST_F(PublisherAccess, AsksThoseInTheClearToComeAgainOnceTlsIsSet) {
  start();
  ServiceClient plain = connect_and_greet();
  set(with_tls(true));
  EXPECT_EQ(next(plain)["error"], "publish.tcp.tls has been set; connect again with TLS");
  EXPECT_FALSE(plain.read_line(kPatienceMs));
  greeted_tls("client");
}

TEST_F(PublisherAccess, SurvivesClientsThatComeAndGoByTlsWhileResultsFlow) {
  start();
  set(with_tls(true));
  std::atomic<bool> stop{false};
  std::vector<std::thread> visitors;
  const auto context = client_tls("plant", "client");
  const Address address = publisher_->bound_addresses().at(0);
  for (int v = 0; v < 3; ++v) {
    visitors.emplace_back([&, v] {
      for (int i = 0; !stop; ++i) {
        auto client = ServiceClient::connect(address, kPatienceMs, context);
        if (!client) continue;
        if (v == 0) (void)client->send_text("{\"command\":\"status\"}\n{\"comm");
        if (i % 3 == 0) (void)client->read_line(kPatienceMs);
      }
    });
  }
  ServiceClient steady = greeted_tls("client");
  for (std::uint64_t seq = 0; seq < 200; ++seq) {
    publish(seq);
    ASSERT_EQ(next(steady)["seq"], seq);
  }
  stop = true;
  for (std::thread& visitor : visitors) visitor.join();
  EXPECT_EQ(publisher_->counters().failed_handshakes, 0U);
}

}  // namespace
}  // namespace patternd
