// SPDX-License-Identifier: BSD-2-Clause
/* What the two halves of the stand-in share. Everything is guarded by one lock. */
#ifndef TESTS_VERBS_FAKE_INNER_H
#define TESTS_VERBS_FAKE_INNER_H

#include <pthread.h>

#include "fake.h"

#define FAKE_SGES 16

struct fake_work {
	uint64_t wr_id;
	bool is_recv;
	bool is_inline;
	int flags;
	enum ibv_wr_opcode opcode;
	uint32_t imm;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t count;
	struct ibv_sge sge[FAKE_SGES];
	unsigned char bytes[256];
	struct fake_work *next;
};

/* The public part comes first in each. */
struct fake_mr {
	struct ibv_mr mr;
	int access;
	struct fake_mr *next;
};

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc *wc;
	uint64_t head, tail;
	bool is_armed;
	unsigned events;
};

struct fake_channel {
	struct ibv_comp_channel channel;
	struct fake_cq *cq; /* the last that had an event */
};

struct fake_srq {
	struct ibv_srq srq;
	struct fake_work *recvs;
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_cap cap;
	enum ibv_qp_state state;
	uint32_t remote; /* number of the queue pair at the other end; 0: none */
	struct fake_work *sends;
	struct fake_work *recvs;
	unsigned events; /* of the device, not acknowledged */
	struct fake_qp *next;
};

extern pthread_mutex_t fake_lock;
/* Puts other transfers in place of the stand-in's when the device is opened; NULL: none. */
extern void (*fake_other_ops)(struct ibv_context_ops *ops);

/* All with the lock held. */
bool fake_fails(const char *name, int error);
void fake_count(int change);
struct ibv_context *fake_open(void);
struct fake_qp *fake_qp_by_number(uint32_t number);
void fake_qp_error(struct fake_qp *qp);
void fake_progress(struct fake_qp *qp);
void fake_async_locked(enum ibv_event_type type, struct ibv_qp *qp);
void fake_signal(int fd);
void fake_unsignal(int fd);
bool fake_is_iwarp(void);

#endif
