// SPDX-License-Identifier: BSD-2-Clause
/* One side of a connection by librdmacm and libibverbs alone (plain_verbs.h). */
#include "plain_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dt.h"

#define WAIT_MS 20000

/* The call must return 0; else says which error it was. */
#define done(call)                                                                                 \
	do {                                                                                       \
		if (call)                                                                          \
			fail_msg("%s: %s", #call, strerror(errno));                                \
	} while (0)
#define DEPTH 32u
#define READS 4u

/* --- the connection manager --- */

static void open_channel(struct plain *plain)
{
	if (plain->channel)
		return;
	plain->channel = rdma_create_event_channel();
	assert_non_null(plain->channel);
}

static struct rdma_cm_event *next_event(struct plain *plain)
{
	struct pollfd ready = {.fd = plain->channel->fd, .events = POLLIN};
	struct rdma_cm_event *event;

	assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
	done(rdma_get_cm_event(plain->channel, &event));
	plain->private_size = event->param.conn.private_data_len;
	if (plain->private_size)
		memcpy(plain->private_data, event->param.conn.private_data, plain->private_size);
	return event;
}

void plain_expect_event(struct plain *plain, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(plain);

	if (event->event != type)
		fail_msg("%s in place of %s", rdma_event_str(event->event), rdma_event_str(type));
	rdma_ack_cm_event(event);
}

static struct sockaddr_in own_address(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, PLAIN_ADDRESS, &address.sin_addr), 1);
	return address;
}

uint16_t plain_listen(struct plain *plain)
{
	struct sockaddr_in address = own_address(0);

	open_channel(plain);
	done(rdma_create_id(plain->channel, &plain->listener, NULL, RDMA_PS_TCP));
	done(rdma_bind_addr(plain->listener, (struct sockaddr *)&address));
	done(rdma_listen(plain->listener, 8));
	return ntohs(rdma_get_src_port(plain->listener));
}

void plain_close(struct plain *plain)
{
	if (plain->listener)
		rdma_destroy_id(plain->listener);
	if (plain->channel)
		rdma_destroy_event_channel(plain->channel);
	*plain = (struct plain){.channel = NULL};
}

/* The queue pair of the connection, and memory for it. */
static void make_queues(struct plain *plain)
{
	const int rights =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = DEPTH,
						.max_send_sge = 1,
						.max_recv_sge = 1},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};

	plain->cq = ibv_create_cq(plain->id->verbs, 2 * (int)DEPTH, NULL, NULL, 0);
	assert_non_null(plain->cq);
	init.send_cq = init.recv_cq = plain->cq;
	done(rdma_create_qp(plain->id, NULL, &init));
	plain->memory = calloc(1, PLAIN_ROOM);
	assert_non_null(plain->memory);
	plain->mr = ibv_reg_mr(plain->id->pd, plain->memory, PLAIN_ROOM, rights);
	assert_non_null(plain->mr);
}

static struct rdma_conn_param param_of(const void *data, uint8_t size)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = size,
					.responder_resources = READS,
					.initiator_depth = READS,
					.retry_count = 7,
					.rnr_retry_count = 7};
}

void plain_take_request(struct plain *plain)
{
	struct rdma_cm_event *event = next_event(plain);

	assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	plain->id = event->id;
	rdma_ack_cm_event(event);
	make_queues(plain);
}

void plain_accept(struct plain *plain, const void *data, uint8_t size)
{
	struct rdma_conn_param param = param_of(data, size);

	done(rdma_accept(plain->id, &param));
}

void plain_reject(struct plain *plain, const void *data, uint8_t size)
{
	done(rdma_reject(plain->id, data, size));
}

/* False: the local port that the connection manager chose is in use (tests/vm/inside-siw). */
static bool try_connect(struct plain *plain, uint16_t port, struct rdma_conn_param *param)
{
	struct sockaddr_in address = own_address(port);
	int rc;

	done(rdma_create_id(plain->channel, &plain->id, NULL, RDMA_PS_TCP));
	done(rdma_resolve_addr(plain->id, NULL, (struct sockaddr *)&address, WAIT_MS));
	plain_expect_event(plain, RDMA_CM_EVENT_ADDR_RESOLVED);
	done(rdma_resolve_route(plain->id, WAIT_MS));
	plain_expect_event(plain, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_queues(plain);
	rc = rdma_connect(plain->id, param);
	if (rc && errno == EADDRINUSE) {
		plain_end(plain);
		return false;
	}
	done(rc);
	return true;
}

void plain_connect(struct plain *plain, uint16_t port, const void *data, uint8_t size)
{
	struct rdma_conn_param param = param_of(data, size);
	unsigned attempts = 1;

	open_channel(plain);
	while (!try_connect(plain, port, &param))
		assert_true(attempts++ < 20);
}

void plain_disconnect(struct plain *plain)
{
	done(rdma_disconnect(plain->id));
}

void plain_end(struct plain *plain)
{
	if (!plain->id)
		return;
	(void)rdma_disconnect(plain->id);
	rdma_destroy_qp(plain->id);
	done(ibv_dereg_mr(plain->mr));
	done(ibv_destroy_cq(plain->cq));
	done(rdma_destroy_id(plain->id));
	free(plain->memory);
	plain->id = NULL;
	plain->memory = NULL;
}

/* --- transfers --- */

static struct ibv_sge sge_of(const struct plain *plain, size_t at, uint32_t size)
{
	assert_true(at + size <= PLAIN_ROOM);
	return (struct ibv_sge){
		.addr = (uintptr_t)plain->memory + at, .length = size, .lkey = plain->mr->lkey};
}

void plain_recv(struct plain *plain, size_t at, uint32_t size)
{
	struct ibv_sge sge = sge_of(plain, at, size);
	struct ibv_recv_wr request = {.sg_list = &sge, .num_sge = 1}, *bad;

	done(ibv_post_recv(plain->id->qp, &request, &bad));
}

static void post(struct plain *plain, struct ibv_sge sge, struct ibv_send_wr request)
{
	struct ibv_send_wr *bad;

	request.sg_list = &sge;
	request.num_sge = 1;
	done(ibv_post_send(plain->id->qp, &request, &bad));
}

void plain_send(struct plain *plain, size_t at, uint32_t size, bool is_solicited)
{
	post(plain, sge_of(plain, at, size),
	     (struct ibv_send_wr){.opcode = IBV_WR_SEND,
				  .send_flags = is_solicited ? IBV_SEND_SOLICITED : 0});
}

void plain_write(struct plain *plain, size_t at, uint32_t size, uint32_t key, uint64_t address)
{
	post(plain, sge_of(plain, at, size),
	     (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = {.rkey = key, .remote_addr = address}});
}

void plain_read(struct plain *plain, size_t at, uint32_t size, uint32_t key, uint64_t address)
{
	post(plain, sge_of(plain, at, size),
	     (struct ibv_send_wr){.opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = {.rkey = key, .remote_addr = address}});
}

enum ibv_wc_status plain_completion(struct plain *plain)
{
	const struct timespec pause = {.tv_nsec = 100000};
	uint64_t give_up = dt_now_us() + WAIT_MS * UINT64_C(1000);
	struct ibv_wc wc;
	int count;

	while (!(count = ibv_poll_cq(plain->cq, 1, &wc))) {
		assert_true(dt_now_us() < give_up);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(count, 1);
	return wc.status;
}

void plain_expect(struct plain *plain, enum ibv_wc_status status)
{
	enum ibv_wc_status found = plain_completion(plain);

	if (found != status)
		fail_msg("%s in place of %s", ibv_wc_status_str(found), ibv_wc_status_str(status));
}
