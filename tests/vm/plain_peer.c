// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer of dat_ping that uses librdmacm and libibverbs directly, without OpenDAT:
 *
 *   plain_peer connect ADDRESS PORT   to a dat_ping server on the qualifier PORT
 *   plain_peer listen ADDRESS         for a dat_ping client with `-o send -n N -S SIZE`
 *
 * It speaks dat_ping's own messages (tools/ping.h) and verifies every byte. Ends with status 0 when
 * all was as it must be.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "ping.h"
#include "shared/cm.h"

#define SIZE 64u
#define ROOM 4096u
#define RECEIVES 2u

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "plain_peer: line %d: %s: %m\n", __LINE__, #condition);    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

struct plain {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	unsigned next; /* the Receive that completes next */
	unsigned char receives[RECEIVES][ROOM];
	unsigned char out[ROOM];
};

static struct plain plain;

/* A synchronous endpoint for one connection, or a listener. */
static struct rdma_cm_id *endpoint(const char *address, const char *port, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 4,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	MUST(!rdma_getaddrinfo(address, port, &hints, &info));
	MUST(!rdma_create_ep(&id, info, NULL, &init));
	rdma_freeaddrinfo(info);
	return id;
}

static void prepare(struct rdma_cm_id *id)
{
	plain.id = id;
	plain.mr = ibv_reg_mr(id->pd, &plain, sizeof(plain), IBV_ACCESS_LOCAL_WRITE);
	MUST(plain.mr);
	for (unsigned i = 0; i < RECEIVES; i++)
		MUST(!rdma_post_recv(id, NULL, plain.receives[i], ROOM, plain.mr));
}

static void send_bytes(const void *bytes, size_t size)
{
	struct ibv_wc wc;

	memmove(plain.out, bytes, size);
	MUST(!rdma_post_send(plain.id, NULL, plain.out, size, plain.mr, 0));
	MUST(rdma_get_send_comp(plain.id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* The next message, valid until the one after the next; NULL: the connection is over. */
static const unsigned char *receive(uint32_t *size_out)
{
	unsigned char *message = plain.receives[plain.next];
	struct ibv_wc wc;

	MUST(rdma_get_recv_comp(plain.id, &wc) == 1);
	if (wc.status != IBV_WC_SUCCESS)
		return NULL;
	plain.next = (plain.next + 1) % RECEIVES;
	*size_out = wc.byte_len;
	return message;
}

static void repost(const unsigned char *message)
{
	MUST(!rdma_post_recv(plain.id, NULL, (void *)(uintptr_t)message, ROOM, plain.mr));
}

static void send_control(enum ping_control_type type, uint32_t count)
{
	struct ping_control control = {.magic = htobe32(PING_MAGIC),
				       .type = htobe32(type),
				       .op = htobe32(PING_SEND),
				       .count = htobe32(count),
				       .size = htobe64(SIZE)};

	send_bytes(&control, sizeof(control));
}

/* Takes a control message; returns its count. */
static uint32_t take_control(enum ping_control_type type)
{
	struct ping_control control;
	const unsigned char *message;
	uint32_t size;

	message = receive(&size);
	MUST(message && size == sizeof(control));
	memcpy(&control, message, sizeof(control));
	repost(message);
	MUST(be32toh(control.magic) == PING_MAGIC && be32toh(control.type) == type);
	return be32toh(control.count);
}

/* Takes a transfer and verifies it. */
static void take_transfer(const struct ping_transfer *transfer)
{
	unsigned char *message;
	uint32_t size;

	message = (unsigned char *)(uintptr_t)receive(&size);
	MUST(message && size == transfer->size);
	ping_guard(message, size);
	MUST(ping_verify(message, transfer) < 0);
	repost(message);
}

static void send_transfer(const struct ping_transfer *transfer)
{
	unsigned char bytes[ROOM];

	ping_fill(bytes, transfer);
	send_bytes(bytes, transfer->size);
}

/* --- both directions --- */

static void connect_to(const char *address, const char *port)
{
	struct ping_hello hello = {.magic = htobe32(PING_MAGIC),
				   .version = htobe32(PING_VERSION),
				   .size_max = htobe64(SIZE),
				   .nonce = htobe64(77)};
	struct rdma_conn_param param = {.private_data = &hello,
					.private_data_len = sizeof(hello),
					.retry_count = 7,
					.rnr_retry_count = 7};
	struct ping_transfer transfer = {.op = PING_SEND, .nonce = 77, .size = SIZE};
	const struct ping_welcome *welcome;

	prepare(endpoint(address, port, 0));
	MUST(!rdma_connect(plain.id, &param));
	/* an OpenDAT acceptor answers a peer without header without header */
	welcome = plain.id->event->param.conn.private_data;
	MUST(plain.id->event->param.conn.private_data_len >= sizeof(*welcome));
	MUST(be32toh(welcome->magic) == PING_MAGIC);
	send_control(PING_BEGIN, 3);
	take_control(PING_ANSWER);
	for (transfer.index = 0; transfer.index < 3; transfer.index++) {
		transfer.is_reply = false;
		send_transfer(&transfer);
		transfer.is_reply = true;
		take_transfer(&transfer);
	}
	send_control(PING_END, 0);
	MUST(take_control(PING_ANSWER) == 0);
	MUST(!rdma_disconnect(plain.id));
}

/* The hello behind the header that an OpenDAT adapter puts in front. */
static uint64_t take_hello(const struct rdma_cm_event *event)
{
	struct cm_request request;
	struct ping_hello hello;

	MUST(cm_get_request(event->param.conn.private_data, event->param.conn.private_data_len, 256,
			    &request) == 1);
	MUST(request.size == sizeof(hello) && request.data_size == sizeof(hello));
	memcpy(&hello, request.data, sizeof(hello));
	MUST(be32toh(hello.magic) == PING_MAGIC);
	return be64toh(hello.nonce);
}

static void serve(uint64_t nonce)
{
	struct ping_transfer transfer = {.op = PING_SEND, .nonce = nonce, .size = SIZE};
	uint32_t count = take_control(PING_BEGIN);

	send_control(PING_ANSWER, 0);
	for (transfer.index = 0; transfer.index < count; transfer.index++) {
		transfer.is_reply = false;
		take_transfer(&transfer);
		transfer.is_reply = true;
		send_transfer(&transfer);
	}
	take_control(PING_END);
	send_control(PING_ANSWER, 0);
}

static void listen_on(const char *address)
{
	struct ping_welcome welcome = {.magic = htobe32(PING_MAGIC),
				       .version = htobe32(PING_VERSION),
				       .size = htobe64(SIZE)};
	struct rdma_conn_param param = {.private_data = &welcome,
					.private_data_len = sizeof(welcome),
					.rnr_retry_count = 7};
	struct rdma_cm_id *listener = endpoint(address, "7471", RAI_PASSIVE);
	struct rdma_cm_id *id;
	struct rdma_cm_event *event;
	uint64_t nonce;

	MUST(!rdma_listen(listener, 4));
	printf("listening on port %u\n", ntohs(rdma_get_src_port(listener)));
	fflush(stdout);
	MUST(!rdma_get_request(listener, &id));
	prepare(id);
	nonce = take_hello(id->event);
	MUST(!rdma_accept(id, &param));
	serve(nonce);
	MUST(!rdma_get_cm_event(id->channel, &event)); /* the client disconnects */
	MUST(event->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(event);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "connect"))
		connect_to(argv[2], argv[3]);
	else if (argc == 3 && !strcmp(argv[1], "listen"))
		listen_on(argv[2]);
	else
		return 2;
	printf("verified\n");
	return 0;
}
