// SPDX-License-Identifier: BSD-2-Clause
/*
 * One side of a connection by librdmacm and libibverbs alone, for tests that play the other side by
 * the API of DAT in the same thread: no function waits for the other side, except those that wait
 * for an event or a completion. A failure ends the test.
 */
#ifndef TESTS_VM_PLAIN_VERBS_H
#define TESTS_VM_PLAIN_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#define PLAIN_ADDRESS "10.0.2.15"
#define PLAIN_ROOM (1024u * 1024u)

struct plain {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;	   /* PLAIN_ROOM bytes that the other side may read and write */
	uint8_t private_data[256]; /* of the last event of the connection manager */
	size_t private_size;
};

/* Listens on a port that the kernel chooses, which is returned. */
uint16_t plain_listen(struct plain *plain);
void plain_close(struct plain *plain);
/* Waits for a connection request, and makes the queue pair. */
void plain_take_request(struct plain *plain);
/* Starts the answer; ESTABLISHED follows. */
void plain_accept(struct plain *plain, const void *data, uint8_t size);
void plain_reject(struct plain *plain, const void *data, uint8_t size);
/* Starts to connect to that port. */
void plain_connect(struct plain *plain, uint16_t port, const void *data, uint8_t size);
void plain_disconnect(struct plain *plain);
/* Ends the connection in any state, and destroys the queue pair. */
void plain_end(struct plain *plain);

/* The next event of the connection manager must be that. */
void plain_expect_event(struct plain *plain, enum rdma_cm_event_type type);

void plain_recv(struct plain *plain, size_t at, uint32_t size);
void plain_send(struct plain *plain, size_t at, uint32_t size, bool is_solicited);
void plain_write(struct plain *plain, size_t at, uint32_t size, uint32_t key, uint64_t address);
void plain_read(struct plain *plain, size_t at, uint32_t size, uint32_t key, uint64_t address);
/* The status of the next completion. */
enum ibv_wc_status plain_completion(struct plain *plain);
void plain_expect(struct plain *plain, enum ibv_wc_status status);

#endif
