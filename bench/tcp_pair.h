// SPDX-License-Identifier: BSD-2-Clause
#ifndef BENCH_TCP_PAIR_H
#define BENCH_TCP_PAIR_H

/* Two connected sockets over the loopback interface, non-blocking, without delay. 0, or -1 and
 * errno. */
int tcp_pair(int sockets_out[2]);

#endif
