// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that close what peers have passed. The last close(2) of a file can block for ever, for
 * example if its FUSE daemon does not answer, or if a TCP socket that lingers is in the queue of a
 * socket that was passed. So no thread that anything waits for may close a descriptor of a peer.
 *
 * A thread is started for the first descriptor, and ends when none is left. It is detached, and
 * the end of an adapter does not wait for it.
 */
#ifndef SOFT_CLOSER_H
#define SOFT_CLOSER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Closes a descriptor that is not in the list of soft/fds.h. A forked child may inherit it while it
 * waits for its thread.
 */
void soft_closer_close(int fd);
/*
 * The same for one of that list. The child of a fork closes its copy at once, and does not make the
 * last close (exceptions: soft_fd_close_last). Ignores others like soft_fd_close().
 */
void soft_closer_close_listed(int fd);

/*
 * Closes a descriptor that a peer has passed: at once if it is a memory file, whose close does not
 * block, else in another thread. Freeing the pages of a large memory file takes long, too: one is
 * closed here only if the peer is trusted.
 */
void soft_closer_close_passed(int fd, bool is_peer_trusted);

/* Descriptors that such threads have not closed yet. */
uint32_t soft_closer_count(void);

#endif
