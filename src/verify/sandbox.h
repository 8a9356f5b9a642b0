// Sandbox: what a runner gives up before it loads a candidate, as far as the kernel lets it. Within the room only.
//
//   rlimits      memory, files' sizes and open files are bounded
//   namespaces   of its own for users, processes, mounts, network and IPC, which it is started in (base/process.h): no network, no
//                other process that it could name or signal; the files of /proc are still the machine's, which landlock shuts
//   landlock     no file can be opened but compiled images, no connection be made, no signal leave
//   seccomp      no system call but what threads, memory, the loader and the channel need; another one ends the process (SIGSYS)
//
// What the kernel refuses is no error: the verdict says what was in force.
#pragma once
#include <string>
#include <vector>
namespace warploom::verify {
std::vector<std::string> shut_in();  // before there are threads; the names of what came into force
bool seal();                         // when all threads are there: whether seccomp did
}  // namespace warploom::verify
