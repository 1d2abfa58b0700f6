#include "daemon/access.h"

#include <arpa/inet.h>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "daemon/attempt_limit.h"
#include "tests/support/certificates.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

IpAddress address_of(const char* text) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&storage, &v4, sizeof v4);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
    v6.sin6_family = AF_INET6;
    std::memcpy(&storage, &v6, sizeof v6);
  }
  return ip_address_of(storage).value_or(IpAddress());
}

TEST(NetworkOfAddresses, HoldsItsAddressesAndNoOthers) {
  struct Case {
    const char* network;
    const char* inside;
    const char* outside;
  };
  for (const Case& each :
       {Case{"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
        Case{"192.168.1.0/24", "192.168.1.0", "192.168.2.0"},
        Case{"192.168.1.128/25", "192.168.1.128", "192.168.1.127"},
        Case{"127.0.0.1", "127.0.0.1", "127.0.0.2"}, Case{"0.0.0.0/0", "8.8.8.8", "fd00::1"},
        Case{"fd00::/8", "fdff::1", "fe00::1"}, Case{"2001:db8::7", "2001:db8::7", "2001:db8::8"},
        Case{"::/0", "::1", nullptr},
        // What a socket for both families says of an IPv4 client.
        Case{"10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"}}) {
    SCOPED_TRACE(each.network);
    const auto network = parse_network(each.network);
    ASSERT_TRUE(network) << network.error().message;
    EXPECT_TRUE(network->contains(address_of(each.inside)));
    if (each.outside != nullptr) {
      EXPECT_FALSE(network->contains(address_of(each.outside)));
    }
    const auto again = parse_network(shown(*network));
    ASSERT_TRUE(again) << shown(*network);
    EXPECT_EQ(again->base, network->base);
    EXPECT_EQ(again->prefix_bits, network->prefix_bits);
  }
}

TEST(NetworkOfAddresses, IsRefusedWithTheCure) {
  for (const char* bad :
       {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0/8",
        "fd00::/129", "localhost", "example.org/8", "10.0.0.0/8/8", "10.0.0.0/99999999999"}) {
    const auto network = parse_network(bad);
    ASSERT_FALSE(network) << bad;
    EXPECT_NE(network.error().message.find("192.168.1.0/24"), std::string::npos)
        << network.error().message;
  }
  EXPECT_EQ(parse_network("10.1.2.3/8").error().message,
            "is \"10.1.2.3/8\", which has bits behind its prefix; must be 10.0.0.0/8, or one "
            "address");
}

TEST(AttemptLimit, HearsTenFailuresAndThenOneASecond) {
  AttemptLimit limit;
  const IpAddress guesser = address_of("10.0.0.1");
  const IpAddress other = address_of("10.0.0.2");
  std::int64_t now = 100 * kSecond;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(limit.allows(guesser, now)) << i;
    limit.failed(guesser, now);
  }
  EXPECT_FALSE(limit.allows(guesser, now));
  EXPECT_TRUE(limit.allows(other, now));
  now += kSecond;
  EXPECT_TRUE(limit.allows(guesser, now));
  limit.failed(guesser, now);
  EXPECT_FALSE(limit.allows(guesser, now));
  EXPECT_TRUE(limit.allows(guesser, now + 20 * kSecond));
}

TEST(AttemptLimit, TakesAHostsIPv6NetworkAsOne) {
  AttemptLimit limit;
  for (int i = 0; i < 10; ++i)
    limit.failed(address_of(("2001:db8:0:1::" + std::to_string(i)).c_str()), 0);
  EXPECT_FALSE(limit.allows(address_of("2001:db8:0:1::ffff"), 0));
  EXPECT_TRUE(limit.allows(address_of("2001:db8:0:2::1"), 0));
}

TEST(AttemptLimit, ForgetsTheOldestWhereMoreFailThanItRemembers) {
  AttemptLimit limit;
  const IpAddress first = address_of("10.1.0.0");
  for (int i = 0; i < 10; ++i) limit.failed(first, 0);
  EXPECT_FALSE(limit.allows(first, 0));
  for (int i = 0; i < 256; ++i) {
    const std::string text = "10.2.0." + std::to_string(i);
    for (int k = 0; k < 11; ++k) limit.failed(address_of(text.c_str()), 0);
  }
  EXPECT_TRUE(limit.allows(first, 0));
}

class CredentialFile : public ::testing::Test {
 protected:
  std::string write(const std::string& content, mode_t mode = 0600) {
    std::string path = folder_.file("token");
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string why_not(const std::string& content, mode_t mode = 0600) {
    const auto token = Token::load(write(content, mode));
    EXPECT_FALSE(token);
    return token ? "" : token.error().message;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(CredentialFile, GivesATokenThatMatchesItselfAlone) {
  const std::string secret = "0123456789abcdef0123456789abcdef";
  const auto token = Token::load(write(secret + "\n", 0640));
  ASSERT_TRUE(token) << token.error().message;
  EXPECT_TRUE(token->matches(secret));
  for (const std::string& wrong : {std::string(), secret + "\n", secret.substr(1), secret + "0",
                                   "1" + secret.substr(1), secret.substr(0, 31) + "e"}) {
    EXPECT_FALSE(token->matches(wrong)) << wrong;
  }
}

TEST_F(CredentialFile, IsRefusedWhereOthersMayReadItOrItHoldsNoToken) {
  const std::string good(32, 'a');
  for (const mode_t open : {0604, 0644, 0666, 0602})
    EXPECT_NE(why_not(good, open)
                  .find("is open to every user of this machine; take that away "
                        "with chmod o= "),
              std::string::npos)
        << std::oct << open;
  for (const std::string& bad :
       {std::string(), std::string("\n"), std::string(15, 'a'), std::string(257, 'a'),
        std::string(16, 'a') + "\nb", std::string(16, 'a') + " ", std::string(16, '\xff'),
        std::string(20, '\0')}) {
    EXPECT_NE(why_not(bad).find("openssl rand -hex 32"), std::string::npos) << bad;
  }
  EXPECT_NE(Token::load(folder_.path()).error().message.find("must be a regular file"),
            std::string::npos);
  EXPECT_NE(Token::load(folder_.file("none")).error().message.find("no such file"),
            std::string::npos);
  const std::string pipe = folder_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(Token::load(pipe).error().message.find("must be a regular file"), std::string::npos);
}

TEST(TlsFiles, AreRefusedWithTheirNamesAndTheCure) {
  const test::TemporaryFolder folder;
  test::CertificateMaker make(folder.path());
  make.authority("plant");
  make.signed_by("plant", "service");
  make.signed_by("plant", "other");
  std::ofstream(folder.file("text")) << "no certificate\n";
  const auto context = TlsContext::create(TlsContext::Side::kServer);
  ASSERT_TRUE(context) << context.error().message;
  TlsContext& tls = **context;
  const auto says = [](const Result<void>& result, const std::string& what) {
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find(what), std::string::npos) << result.error().message;
  };
  says(tls.use_certificate(folder.file("none")), "no such file");
  says(tls.use_certificate(folder.file("text")), "holds no certificate in PEM form");
  ASSERT_TRUE(tls.use_certificate(make.certificate("service")));
  says(tls.use_key(make.certificate("service")), "is open to every user");
  chmod(make.certificate("service").c_str(), 0600);
  says(tls.use_key(make.certificate("service")), "holds no private key");
  says(tls.use_key(make.key("other")), "is not the key of the certificate beside it");
  EXPECT_TRUE(tls.use_key(make.key("service")));
  chmod(folder.file("text").c_str(), 0600);
  says(tls.require_peer(folder.file("text")), "holds no certificate");
  EXPECT_TRUE(tls.require_peer(make.certificate("plant")));
}

}  // namespace
}  // namespace patternd
