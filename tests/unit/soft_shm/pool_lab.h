// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of pools share: bytes, and further connections beside the one of the lab. */
#ifndef TESTS_SOFT_SHM_POOL_LAB_H
#define TESTS_SOFT_SHM_POOL_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "lab.h"
#include "soft/fds.h"
#include "soft/shm/ring.h"
#include "soft/shm/segment.h"
#include "soft/shm/state.h"
#include "soft/shm/transfer/pool.h"

#define LARGE (SHM_PIECE + 1000u) /* two pieces */
#define LAST SHM_FLAG_LAST
#define FIRST SHM_FLAG_FIRST
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline int setup(void **state)
{
	*state = lab_open(CORE_COPY_RING, false);
	return 0;
}

static inline int teardown(void **state)
{
	lab_close(*state);
	return 0;
}

/* --- bytes --- */

static inline uint8_t byte_at(uint32_t seed, size_t i)
{
	return (uint8_t)(seed * 37 + i * 11 + (i >> 8) * 3);
}

static inline void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_at(seed, i);
}

/* `at`: the index of the first byte in the pattern. */
static inline void check(const uint8_t *p, size_t at, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], byte_at(seed, at + i));
}

/* --- connections without an endpoint, beside the one of the lab --- */

struct line {
	struct shm_conn *conn;
	struct shm_consumer requests, responses; /* the peer's */
};

static inline void peer_consumers(struct line *line)
{
	struct shm_segment *segment = line->conn->segment;
	struct shm_side *peer = line->conn->theirs;

	shm_consumer_init(&line->requests, segment->request[SHM_PASSIVE], SHM_REQUEST_RING,
			  SHM_REQUEST_PAYLOAD, &peer->request_consumed);
	shm_consumer_init(&line->responses, segment->response[SHM_PASSIVE], SHM_RESPONSE_RING,
			  SHM_RESPONSE_PAYLOAD, &peer->response_consumed);
}

/* The connection of the lab. */
static inline struct line lab_line(struct lab *lab)
{
	struct line line = {.conn = lab->conn};

	peer_consumers(&line);
	return line;
}

/* lab_peer_packet reads what it sends to the peer. */
static inline void line_open(struct lab *lab, struct line *line)
{
	int fd = fcntl(lab->conn->fd, F_DUPFD_CLOEXEC, 0), segment_fd;

	assert_true(fd >= 0);
	assert_int_equal(soft_fd_add(fd), 0);
	assert_int_equal(shm_conn_create(&lab->engine, fd, SHM_PASSIVE, &line->conn), 0);
	assert_int_equal(shm_conn_make_segment(line->conn, &segment_fd), 0);
	line->conn->segment_fd = segment_fd;
	line->conn->remote.pid = lab->conn->remote.pid;
	line->conn->remote.is_trusted = true;
	peer_consumers(line);
}

/* The packets of the lab's connection are not affected: it uses the same socket. */
static inline void line_close(struct line *line)
{
	soft_fd_close(line->conn->fd);
	line->conn->fd = -1;
	shm_conn_put(line->conn);
	line->conn = NULL;
}

#endif
