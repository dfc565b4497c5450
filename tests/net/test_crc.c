// SPDX-License-Identifier: BSD-2-Clause
/*
 * Damage on the way between two hosts that the checksum of TCP does not show. A third host passes
 * the bytes on, over connections of its own, and flips one bit of the message that says so.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "must.h"
#include "net.h"

enum { TARGET, RELAY, SENDER, HOSTS };

#define QUAL 7300u
#define SIZE 8u
#define WHOLE "is whole"
#define MARK "flip me!"

/* --- the relay --- */

static int relay_socket(const struct net_host *host, unsigned index, struct sockaddr_storage *name)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	net_address(host->family, index, name);
	((struct sockaddr_in *)name)->sin_port = htons(QUAL);
	return fd;
}

/* False: no more comes. */
static bool pass_on(int from, int to)
{
	unsigned char bytes[65536];
	ssize_t size = recv(from, bytes, sizeof(bytes), 0);
	unsigned char *mark;

	if (size <= 0)
		return false;
	mark = memmem(bytes, (size_t)size, MARK, SIZE);
	if (mark)
		mark[1] ^= 1;
	return send(to, bytes, (size_t)size, MSG_NOSIGNAL) == size;
}

static void relay(const struct net_host *host)
{
	struct sockaddr_storage name;
	uint64_t unused[NET_MAX];
	struct pollfd polls[2];
	int listener = relay_socket(host, RELAY, &name);

	must(bind(listener, (struct sockaddr *)&name, sizeof(struct sockaddr_in)) == 0);
	must(listen(listener, 1) == 0);
	net_exchange(host, 0, unused);
	polls[0] = (struct pollfd){.events = POLLIN, .fd = accept(listener, NULL, NULL)};
	polls[1] = (struct pollfd){.events = POLLIN, .fd = relay_socket(host, TARGET, &name)};
	must(polls[0].fd >= 0);
	must(connect(polls[1].fd, (struct sockaddr *)&name, sizeof(struct sockaddr_in)) == 0);
	while (polls[0].fd >= 0 || polls[1].fd >= 0) {
		must(poll(polls, 2, -1) > 0);
		for (unsigned i = 0; i < 2; i++) {
			if (!polls[i].revents || pass_on(polls[i].fd, polls[1 - i].fd))
				continue;
			(void)shutdown(polls[1 - i].fd, SHUT_WR);
			polls[i].events = 0;
			if (!polls[1 - i].events)
				return;
		}
	}
}

/* --- the ends --- */

static void post(struct dt_ep *ep, struct dt_buf *buf, size_t at, bool is_send)
{
	DAT_LMR_TRIPLET segment = dt_seg(buf, at, SIZE);

	if (is_send)
		dt_ok(dat_ep_post_send(ep->ep, 1, &segment, dt_cookie(at),
				       DAT_COMPLETION_DEFAULT_FLAG));
	else
		dt_ok(dat_ep_post_recv(ep->ep, 1, &segment, dt_cookie(at),
				       DAT_COMPLETION_DEFAULT_FLAG));
}

static void receive(struct dt_ep *ep, struct dt_buf *buf, bool has_crc)
{
	DAT_EVENT event;

	dt_expect_dto(ep->recv, ep->ep, 0, DAT_DTO_SUCCESS, SIZE);
	assert_memory_equal(buf->p, WHOLE, SIZE);
	event = dt_event(ep->recv);
	if (has_crc) {
		assert_int_not_equal(event.event_data.dto_completion_event_data.status,
				     DAT_DTO_SUCCESS);
	} else {
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
		assert_memory_not_equal(buf->p + SIZE, MARK, SIZE);
	}
}

static void send_two(struct dt_ep *ep, struct dt_buf *buf, bool has_crc)
{
	memcpy(buf->p, WHOLE MARK, 2 * SIZE);
	post(ep, buf, 0, true);
	dt_expect_dto(ep->request, ep->ep, 0, DAT_DTO_SUCCESS, SIZE);
	post(ep, buf, SIZE, true);
	if (!has_crc)
		dt_expect_dto(ep->request, ep->ep, SIZE, DAT_DTO_SUCCESS, SIZE);
}

static void begin(const struct net_host *host, struct dt_ia *ia, struct dt_ep *ep)
{
	struct dt_listener listener = {.qual = QUAL};
	struct sockaddr_storage address;
	uint64_t unused[NET_MAX];

	if (host->index == TARGET) {
		listener.evd = dt_evd_create(ia, 8, DAT_EVD_CR_FLAG);
		dt_ok(dat_psp_create(ia->ia, QUAL, listener.evd, DAT_PSP_CONSUMER_FLAG,
				     &listener.psp));
	}
	net_exchange(host, 0, unused);
	net_address(host->family, RELAY, &address);
	if (host->index == TARGET)
		dt_ok(dat_cr_accept(dt_request(&listener), ep->ep, 0, NULL));
	else
		dt_ok(dat_ep_connect(ep->ep, (DAT_IA_ADDRESS_PTR)&address, QUAL, DT_WAIT_US, 0,
				     NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	dt_expect_conn(ep->conn, ep->ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	if (host->index == TARGET)
		dt_unlisten(&listener);
}

static void be_end(const struct net_host *host, bool has_crc)
{
	struct dt_buf buf;
	struct dt_ia ia;
	struct dt_ep ep;

	dt_ia_open(&ia);
	dt_ep_create(&ia, ia.pz, NULL, &ep);
	dt_buf_create(&ia, ia.pz, &buf, 2 * SIZE, DAT_MEM_PRIV_ALL_FLAG);
	if (host->index == TARGET) {
		post(&ep, &buf, 0, false);
		post(&ep, &buf, SIZE, false);
	}
	begin(host, &ia, &ep);
	if (host->index == TARGET)
		receive(&ep, &buf, has_crc);
	else
		send_two(&ep, &buf, has_crc);
	if (!has_crc && host->index == SENDER)
		dt_ok(dat_ep_disconnect(ep.ep, DAT_CLOSE_GRACEFUL_FLAG));
	dt_expect_conn(ep.conn, ep.ep,
		       has_crc ? DAT_CONNECTION_EVENT_BROKEN : DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_buf_free(&buf);
	dt_ep_free(&ep);
	dt_ia_close(&ia);
}

static void be_host(const struct net_host *host)
{
	if (host->index == RELAY)
		relay(host);
	else
		be_end(host, !getenv("DAT_CRC"));
}

static void run_hosts(void)
{
	struct net net;

	net_start(&net, HOSTS, NET_IPV4, be_host);
	net_pass_on(&net);
	net_join(&net);
}

/* MPA-23 MPA-51: the CRC is on between hosts, so that nobody is given damaged bytes */
static void crc_auto__bit_flipped_on_the_way__broken(void **state)
{
	(void)state;
	run_hosts();
}

/* MPA-23: there is nothing else that would notice */
static void crc_off__bit_flipped_on_the_way__delivered(void **state)
{
	(void)state;
	setenv("DAT_CRC", "off", 1);
	run_hosts();
	unsetenv("DAT_CRC");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_auto__bit_flipped_on_the_way__broken),
		cmocka_unit_test(crc_off__bit_flipped_on_the_way__delivered),
	};

	if (!net_enter())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
