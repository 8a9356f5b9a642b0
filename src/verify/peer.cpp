#include "verify/peer.h"
#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <functional>
#include "base/file.h"
#include "verify/channel.h"
#include "verify/shared_memory.h"

namespace warploom::verify {
bool peer_main(const char* command, int words, int argc, char** argv, int* status,
               const std::function<int(Channel&, char* memory)>& work) {
  if (argc < 2 || std::strcmp(argv[1], command) != 0) return false;
  *status = 2;
  if (argc != words) return true;
  set_cache_folder(argv[3]);
  const int socket = std::atoi(argv[2]);
  Channel channel(socket);
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);  // compilers have no business with it
  const int file = words > 4 ? std::atoi(argv[4]) : -1;
  char* const memory = file >= 0 ? SharedMemory::map(file) : nullptr;
  if (file >= 0) ::close(file);
  if (file < 0 || memory) *status = work(channel, memory);
  return true;
}
}  // namespace warploom::verify
