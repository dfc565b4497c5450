// SPDX-License-Identifier: BSD-2-Clause
/* A peer of the whole provider that the test plays: it writes and reads chosen bytes on a TCP
 * socket of the loopback interface. */
#ifndef TESTS_SOFT_IWARP_SETUP_PEER_H
#define TESTS_SOFT_IWARP_SETUP_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "setup_stage.h"
#include "shared/cm.h"
#include "soft/iwarp/wire/formats.h"

/* --- the peer's socket --- */

/* A signal may interrupt each wait, for example that of libFuzzer's timer. */

/* Waits for one of these events, or an error; what has come. */
static inline short wait_ready(int fd, short events)
{
	struct pollfd ready = {.fd = fd, .events = events};
	int count;

	do
		count = poll(&ready, 1, WAIT_MS);
	while (count < 0 && errno == EINTR);
	assert_int_equal(count, 1);
	return ready.revents;
}

static inline void expect_ready(int fd, short events)
{
	(void)wait_ready(fd, events);
}

/* Each call of put() sends at once, also while earlier bytes are not acknowledged. */
static inline void send_at_once(int fd)
{
	int yes = 1;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), 0);
}

static inline int dial(DAT_CONN_QUAL port)
{
	struct sockaddr_in address = loopback((uint16_t)port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		assert_int_equal(errno, EINTR); /* then the kernel goes on */
		expect_ready(fd, POLLOUT);
	}
	send_at_once(fd);
	return fd;
}

/* Listens on a port; 0: any. Its number is stored. */
static inline int listen_at(uint16_t port, uint16_t *port_out)
{
	struct sockaddr_in address = loopback(port);
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int yes = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*port_out = ntohs(address.sin_port);
	return fd;
}

static inline int answer_call(int listener)
{
	int fd;

	expect_ready(listener, POLLIN);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	send_at_once(fd);
	return fd;
}

static inline void put(int fd, const void *bytes, size_t size)
{
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* A byte now and then, until all are sent or the other side ends the connection, which may also
 * come between the look and the byte. Returns how many were sent. */
static inline size_t put_slowly(int fd, const void *bytes, size_t size, int pause_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	const uint8_t *at = bytes;
	size_t sent = 0;

	while (sent < size && !poll(&ready, 1, pause_ms) &&
	       send(fd, at + sent, 1, MSG_NOSIGNAL) == 1)
		sent++;
	return sent;
}

/* Reads exactly that many bytes. */
static inline void get(int fd, void *bytes, size_t size)
{
	struct timeval wait = {.tv_sec = WAIT_MS / 1000};
	uint8_t *at = bytes;
	ssize_t count;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
	while (size) {
		count = recv(fd, at, size, MSG_WAITALL);
		if (count < 0 && errno == EINTR)
			continue;
		assert_true(count > 0);
		at += count;
		size -= (size_t)count;
	}
}

/* The library ends TCP, and has sent nothing more. */
static inline void expect_end(int fd)
{
	uint8_t byte;
	ssize_t count;

	expect_ready(fd, POLLIN);
	count = recv(fd, &byte, 1, MSG_DONTWAIT);
	assert_true(count == 0 || (count < 0 && errno == ECONNRESET));
}

/* The library resets TCP. */
static inline void expect_reset(int fd)
{
	assert_true(wait_ready(fd, POLLRDHUP) & POLLERR);
}

static inline void expect_closed(int fd)
{
	expect_end(fd);
	close(fd);
}

/* Nothing has come, and the connection is open. */
static inline void expect_silence(int fd)
{
	uint8_t byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* --- frames, byte by byte --- */

#define FLAG_M 0x80
#define FLAG_C 0x40
#define FLAG_R 0x20
#define FLAG_S 0x10
#define WORD_A 0x80000000u
#define WORD_B 0x40000000u
#define WORD_C 0x8000u
#define WORD_D 0x4000u
/* both words of the enhanced data; A, B, C and D stand at their places */
#define WORDS(bits, ird, ord) ((bits) | (uint32_t)(ird) << 16 | (uint32_t)(ord))

struct frame {
	uint8_t head[IW_MPA_HEAD];
	uint8_t data[IW_MPA_PRIVATE_MAX];
};

static inline size_t frame_size(const struct frame *frame)
{
	return IW_MPA_HEAD + ((size_t)frame->head[18] << 8 | frame->head[19]);
}

static inline uint32_t frame_words(const struct frame *frame)
{
	const uint8_t *at = frame->data;

	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline struct frame make_frame(const char *key, uint8_t flags, uint8_t revision,
				      const void *data, size_t size)
{
	struct frame frame = {.data = {0}};

	memcpy(frame.head, key, 16);
	frame.head[16] = flags;
	frame.head[17] = revision;
	frame.head[18] = (uint8_t)(size >> 8);
	frame.head[19] = (uint8_t)size;
	if (size)
		memcpy(frame.data, data, size);
	return frame;
}

#define REQUEST "MPA ID Req Frame"
#define REPLY "MPA ID Rep Frame"

/* With the enhanced data in front. */
static inline struct frame make_enhanced(const char *key, uint8_t flags, uint32_t words,
					 const void *data, size_t size)
{
	uint8_t bytes[IW_MPA_PRIVATE_MAX] = {(uint8_t)(words >> 24), (uint8_t)(words >> 16),
					     (uint8_t)(words >> 8), (uint8_t)words};

	if (size)
		memcpy(bytes + 4, data, size);
	return make_frame(key, flags | FLAG_S, 2, bytes, size + 4);
}

static inline void put_frame(int fd, const struct frame *frame)
{
	put(fd, frame, frame_size(frame));
}

static inline struct frame get_frame(int fd, const char *key)
{
	struct frame frame;

	get(fd, frame.head, IW_MPA_HEAD);
	assert_memory_equal(frame.head, key, 16);
	assert_true(frame_size(&frame) <= sizeof(frame));
	get(fd, frame.data, frame_size(&frame) - IW_MPA_HEAD);
	return frame;
}

/* An RDMA Write of length 0, which is form C of the RTR: STag 1, TO 0. */
static const uint8_t rtr_write[20] = {0, 14, 0xc1, 0x40, 0, 0, 0, 1};

/* Reads the RTR, its repetitions (IWCM-52), and the first 20 bytes of what follows. */
static inline void get_rtr(int fd, uint8_t bytes[20])
{
	get(fd, bytes, sizeof(rtr_write));
	assert_memory_equal(bytes, rtr_write, sizeof(rtr_write));
	do
		get(fd, bytes, 20);
	while (!memcmp(bytes, rtr_write, sizeof(rtr_write)));
}

/* Waits until the service thread has done what was there to do before. */
static inline void expect_served(void)
{
	int fd = dial(stage.qual);

	put(fd, "GET", 3);
	expect_closed(fd);
}

#endif
