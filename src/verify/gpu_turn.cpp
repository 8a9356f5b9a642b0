#include "verify/gpu_turn.h"
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include "base/file.h"
#include "base/hash.h"

namespace warploom::verify {
GpuTurn::GpuTurn(const std::string& place, std::chrono::milliseconds patience)
    : patience_(patience) {
  if (place.empty()) return;
  const std::filesystem::path folder = cache_folder() / "turns";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string path = (folder / hash_hex(place)).string();
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

GpuTurn::~GpuTurn() {
  if (file_ >= 0) ::close(file_);
}

GpuTurn* GpuTurn::take(bool alone) {
  if (file_ < 0 || held_) return nullptr;
  const int wanted = (alone ? LOCK_EX : LOCK_SH) | LOCK_NB;
  const auto until = std::chrono::steady_clock::now() + patience_;
  while (::flock(file_, wanted) != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  held_ = true;
  return this;
}

void GpuTurn::leave() {
  held_ = false;
  (void)::flock(file_, LOCK_UN);
}
}  // namespace warploom::verify
