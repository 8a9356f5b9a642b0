// conformance.cu goes on: what blocks of a cluster do together.

// Four blocks: each writes its rank to its right neighbour, reads its left neighbour's answer,
// signals a remote barrier, and rank 0 multicasts a box to all.
WL_KERNEL_CLUSTER(cluster_ring, 32, 1, 4, 1, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  const unsigned bar = smem + 8192;
  const unsigned loaded = bar + 8;
  const unsigned stage = bar + 64;
  const int rank = wl::cluster_rank();
  if (wl::thread() == 0) {
    wl::mbarrier_init(bar, 1);
    wl::mbarrier_init(loaded, 1);
    wl::fence_mbarrier_init();
  }
  wl::cluster_sync();
  WL_REG(int, x, 1);
  const int right = (rank + 1) % 4;
  if (wl::thread() == 0) {
    wl::mbarrier_arrive_expect_tx(loaded, 2048);
    x[0] = 100 + rank;
    wl::st_shared_cluster<4>(wl::mapa(stage, right), wl::at(x, 0));
    wl::mbarrier_arrive_cluster(bar, right);
  }
  wl::mbarrier_wait_cluster(bar, 0);
  wl::cluster_sync();
  if (rank == 0 && wl::thread() == 0) wl::tma_load_multicast(smem, map_in, loaded, 0xf, 0, 0);
  wl::ld_shared<4>(wl::at(x, 0), stage);
  if (wl::thread() == 0) wl::st_global<4>(reinterpret_cast<int*>(out) + rank * 4, wl::at(x, 0));
  wl::ld_shared_cluster<4>(wl::at(x, 0), wl::mapa(stage, (rank + 2) % 4));
  if (wl::thread() == 0) wl::st_global<4>(reinterpret_cast<int*>(out) + rank * 4 + 1, wl::at(x, 0));
  wl::mbarrier_wait(loaded, 0);
  WL_REG(unsigned, w, 2);
  wl::ld_shared<8>(wl::at(w, 0), smem + rank * 128);
  if (wl::thread() == 0) wl::st_global<8>(out + rank * 4 + 2, wl::at(w, 0));
  wl::cluster_sync();
}
WL_EXPORT(cluster_ring)

// Four blocks: every thread stores to its right neighbour's stages, in two rounds.
WL_KERNEL_CLUSTER(store_async, 32, 1, 4, 1, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  const unsigned bar = smem;
  const unsigned stage = smem + 16 + 4 * wl::thread();
  const int right = (wl::cluster_rank() + 1) % 4;
  if (wl::thread() == 0) {
    wl::mbarrier_init(bar, 1);
    wl::mbarrier_init(bar + 8, 1);
    wl::fence_mbarrier_init();
  }
  wl::cluster_sync();
  WL_REG(int, x, 1);
  x[0] = 1000 * wl::cluster_rank() + wl::thread();
  for (int round = 0; round < 2; ++round) {
    if (wl::thread() == 0) wl::mbarrier_arrive_expect_tx(bar + 8 * round, 128);
    wl::st_async<4>(wl::mapa(stage + 128 * round, right), wl::at(x, 0),
                    wl::mapa(bar + 8 * round, right));
    wl::mbarrier_wait_cluster(bar + 8 * round, 0);
    wl::ld_shared<4>(wl::at(x, 0), stage + 128 * round);
  }
  wl::st_global<4>(reinterpret_cast<int*>(out) + 32 * wl::cluster_rank() + wl::thread(),
                   wl::at(x, 0));
}
WL_EXPORT(store_async)

// Four blocks in two pairs (ranks r and r + 2): each fetches half a box for its pair.
WL_KERNEL_CLUSTER(cluster_pairs, 32, 1, 4, 1, 1) PARAMETERS {
  const unsigned smem = WL_SHARED_BASE();
  const unsigned full = smem + 2048;
  const int rank = wl::cluster_rank();
  const int pair = rank % 2;
  const int share = rank / 2;
  if (wl::thread() == 0) {
    wl::mbarrier_init(full, 1);
    wl::fence_mbarrier_init();
  }
  wl::cluster_sync();
  if (wl::thread() == 0) {
    wl::mbarrier_arrive_expect_tx(full, 2048);
    wl::tma_load_multicast(smem + share * 1024, map_in, full, 5 << pair, 0, pair * 16 + share * 8);
  }
  wl::mbarrier_wait(full, 0);
  WL_REG(unsigned, w, 1);
  wl::ld_shared<4>(wl::at(w, 0), smem + wl::thread() / 2 * 128 + wl::thread() % 2 * 4);
  wl::st_global<4>(out + rank * 32 + wl::thread(), wl::at(w, 0));
  wl::cluster_sync();
}
WL_EXPORT(cluster_pairs)
