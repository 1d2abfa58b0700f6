// Certificates for tests, made on the spot.
#pragma once

#include <map>
#include <memory>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string>

namespace patternd::test {

// Writes PEM files into a folder that exists: NAME.pem and, closed to others, NAME.key.
//   CertificateMaker make(folder.path());
//   make.authority("plant");
//   make.signed_by("plant", "service");
class CertificateMaker {
 public:
  explicit CertificateMaker(std::string folder) : folder_(std::move(folder)) {}

  void authority(const std::string& name) { make(name, name); }
  // For 127.0.0.1 and localhost, good for both sides; `days` from now on, or in the past.
  void signed_by(const std::string& authority, const std::string& name, int days = 1) {
    make(authority, name, days);
  }
  [[nodiscard]] std::string certificate(const std::string& name) const {
    return folder_ + "/" + name + ".pem";
  }
  [[nodiscard]] std::string key(const std::string& name) const {
    return folder_ + "/" + name + ".key";
  }

 private:
  void make(const std::string& signer, const std::string& name, int days = 1);

  std::string folder_;
  long serial_ = 1;
  std::map<std::string, std::shared_ptr<EVP_PKEY>> keys_;
};

}  // namespace patternd::test
