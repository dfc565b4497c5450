// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process that writes through a window of another one: repeatedly, once, or until a page that it
 * cannot read holds it in the middle of a copy.
 */
#ifndef TESTS_WINDOW_WRITER_H
#define TESTS_WINDOW_WRITER_H

#include "bind_util.h"
#include "copy_path.h"
#include "dto_peer.h"

#include <signal.h>
#include <unistd.h>
#include <sys/mman.h>

#define WINDOW (48u * 1024)
#define HELD_LEN 8192u

enum verb { WRITE_REPEATEDLY, WRITE_ONCE, WRITE_HELD, END };

struct order {
	enum verb verb;
	unsigned warm_up_us; /* WRITE_HELD */
	DAT_RMR_TRIPLET target;
};

static struct {
	int fd;
	unsigned char *page;
	size_t size;
	volatile sig_atomic_t count;
} held;

/* The copy has reached the locked page. Reports that, and waits for the owner before it
 * continues. */
static inline void on_fault(int number)
{
	char byte = 'h';

	(void)number;
	held.count++;
	if (write(held.fd, &byte, 1) != 1 || read(held.fd, &byte, 1) != 1 ||
	    mprotect(held.page, held.size, PROT_READ | PROT_WRITE))
		_exit(1);
}

static inline DAT_DTO_COMPLETION_STATUS write_once(struct far_end *far, DAT_RMR_TRIPLET target,
						   unsigned char value)
{
	const size_t len = target.segment_length;

	memset(far->buf.p, value, len);
	post_write(&far->ep, dt_seg(&far->buf, 0, len), target, value, DAT_COMPLETION_DEFAULT_FLAG);
	return dt_event(far->ep.request).event_data.dto_completion_event_data.status;
}

/* Sends a byte when the Writes take the copy path of the test, and goes on. */
static inline DAT_DTO_COMPLETION_STATUS write_repeatedly(struct dt_peer *peer, struct far_end *far,
							 DAT_RMR_TRIPLET target)
{
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
	const char ready = 'r';

	do
		assert_int_equal(write_once(far, target, 1), DAT_DTO_SUCCESS);
	while (copy_path_awaits_mapping(far->ep.ep));
	dt_peer_send(peer, &ready, 1);
	for (unsigned i = 0; status == DAT_DTO_SUCCESS; i++)
		status = write_once(far, target, (unsigned char)(i % 251 + 1));
	return status;
}

/* The handler sends 'h' if the copy is held. Else the copy took another path: sends 'f'. */
static inline DAT_DTO_COMPLETION_STATUS write_held(struct dt_peer *peer, struct far_end *far,
						   const struct order *order)
{
	const uint64_t warm = dt_now_us() + order->warm_up_us;
	DAT_RMR_TRIPLET target = order->target;
	struct sigaction action = {.sa_handler = on_fault};
	DAT_DTO_COMPLETION_STATUS status;
	const char failed = 'f';

	held.fd = peer->fd;
	held.size = (size_t)sysconf(_SC_PAGESIZE);
	held.page = far->buf.p + HELD_LEN - held.size;
	target.segment_length = 64;
	do
		assert_int_equal(write_once(far, target, 1), DAT_DTO_SUCCESS);
	while (dt_now_us() < warm);
	target.segment_length = HELD_LEN;
	assert_int_equal(write_once(far, target, 2), DAT_DTO_SUCCESS);
	memset(far->buf.p, 3, HELD_LEN);
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(held.page, held.size, PROT_NONE), 0);
	post_write(&far->ep, dt_seg(&far->buf, 0, HELD_LEN), target, 3, 0);
	status = dt_event(far->ep.request).event_data.dto_completion_event_data.status;
	assert_int_equal(mprotect(held.page, held.size, PROT_READ | PROT_WRITE), 0);
	if (!held.count)
		dt_peer_send(peer, &failed, 1);
	return status;
}

static inline void writer(struct dt_peer *peer, void *arg)
{
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
	struct far_end far;
	struct order order;

	(void)arg;
	far_end_open(peer, &far, WINDOW);
	for (;;) {
		dt_peer_recv(peer, &order, sizeof(order));
		if (order.verb == END)
			break;
		if (order.verb == WRITE_REPEATEDLY)
			status = write_repeatedly(peer, &far, order.target);
		else if (order.verb == WRITE_ONCE)
			status = write_once(&far, order.target, 0x11);
		else
			status = write_held(peer, &far, &order);
		dt_peer_send(peer, &status, sizeof(status));
	}
	dt_ia_abort(&far.ia);
}

#endif
