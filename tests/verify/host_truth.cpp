#include "host_truth.h"
#include "codegen/launch_list.h"
#include "verify/channel.h"
#include "verify/device_truth.h"
#include "verify/peer.h"

namespace warploom::verify {
bool host_truth_main(int argc, char** argv, int* status) {
  return peer_main(kTruthCommand, 5, argc, argv, status, [](Channel& channel, char* memory) {
    return truth_for(channel, memory, Engine::cpu);
  });
}
}  // namespace warploom::verify
