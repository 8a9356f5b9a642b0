// Peer's other end: what a program does that Peer::start() (channel.h) started. Within the room
// only.
#pragma once
#include <functional>
#include "verify/channel.h"

namespace warploom::verify {
// True when `argv` is `command` and of so many words. `work` has then been handed the channel and
// the shared memory, null without a fifth word, and `*status` is what it gave: what the program
// should exit with.
bool peer_main(const char* command, int words, int argc, char** argv, int* status,
               const std::function<int(Channel&, char* memory)>& work);
}  // namespace warploom::verify
