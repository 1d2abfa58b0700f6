#include "tests/support/certificates.h"

#include <cstdio>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <sys/stat.h>

namespace patternd::test {
namespace {

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("OpenSSL made no ") + what);
}

void extend(X509* certificate, X509V3_CTX& context, int kind, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  expect(extension != nullptr, "extension");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void set_common_name(X509_NAME* subject, const std::string& name) {
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
}

template <class Write>
void write_pem(const std::string& path, const Write& write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  expect(file != nullptr && write(file) == 1, "file");
  std::fclose(file);
}

}  // namespace

void CertificateMaker::make(const std::string& signer, const std::string& name, int days) {
  const std::shared_ptr<EVP_PKEY> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"),
                                      EVP_PKEY_free);
  const std::shared_ptr<X509> made(X509_new(), X509_free);
  expect(key != nullptr && made != nullptr, "key");
  keys_[name] = key;
  X509* certificate = made.get();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial_++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), days < 0 ? 86400L * (days - 1) : -3600L);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400L * days);
  X509_set_pubkey(certificate, key.get());
  set_common_name(X509_get_subject_name(certificate), name);
  set_common_name(X509_get_issuer_name(certificate), signer);
  X509V3_CTX context{};
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  extend(certificate, context, NID_basic_constraints,
         signer == name ? "critical,CA:TRUE" : "critical,CA:FALSE");
  extend(certificate, context, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  expect(X509_sign(certificate, keys_.at(signer).get(), EVP_sha256()) > 0, "signature");
  write_pem(this->certificate(name),
            [&](std::FILE* file) { return PEM_write_X509(file, certificate); });
  write_pem(this->key(name), [&](std::FILE* file) {
    chmod(this->key(name).c_str(), 0600);
    return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace patternd::test
