// SPDX-License-Identifier: BSD-2-Clause
/* What the files of the stand-in share. One lock guards everything. */
#ifndef TESTS_VERBS_FAKE_INNER_H
#define TESTS_VERBS_FAKE_INNER_H

#include <pthread.h>

#include "fake.h"

#define FAKE_SGES 16
#define FAKE_VENDOR 0x123456u

/* The bind of a window, as the library gives it to the device. */
struct fake_bind {
	struct fake_mw *mw;
	uint32_t old_rkey, new_rkey;
	uint32_t lkey;
	uint64_t addr, length;
	int access;
	bool is_carried_out;
	enum ibv_wc_status status;
};

struct fake_work {
	uint64_t wr_id;
	bool is_recv;
	bool is_inline;
	bool is_in_flight; /* an RDMA Read that is held back (fake_hold_reads) */
	bool is_done;	   /* carried out; completes when it is the oldest */
	enum ibv_wc_status status;
	int flags;
	enum ibv_wr_opcode opcode;
	uint32_t imm;
	bool has_imm_only; /* a Receive that immediate data of an RDMA Write took */
	uint64_t compare_add, swap;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t count;
	struct ibv_sge sge[FAKE_SGES];
	unsigned char bytes[256];
	struct fake_bind *bind; /* IBV_WR_BIND_MW */
	struct fake_work *next;
};

/* The public part comes first in each. */
struct fake_mr {
	struct ibv_mr mr;
	int access;
	unsigned windows; /* bound to it */
	struct fake_mr *next;
};

static inline bool fake_is_atomic(const struct fake_work *work)
{
	return work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

struct fake_mw {
	struct ibv_mw mw; /* its rkey is the library's */
	uint32_t rkey;	  /* the device's */
	struct fake_mr *mr;
	uint64_t addr, length; /* length 0: not bound */
	int access;
	struct fake_mw *next;
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
	unsigned events; /* of the device, not acknowledged */
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_cap cap;
	enum ibv_qp_state state;
	uint32_t remote;     /* number of the peer's queue pair; 0: none */
	uint32_t reads_most; /* RDMA Reads that it starts at a time; 0: any number */
	struct fake_work *sends;
	struct fake_work *recvs;
	unsigned int access;
	struct fake_work *held; /* the buffers of the SRQ that messages are being placed in */
	unsigned events;	/* of the device, not acknowledged */
	struct fake_qp *next;
};

extern pthread_mutex_t fake_lock;
extern struct ibv_context fake_context;
/* The last number or key that was given to an object. */
extern uint32_t fake_last_number;
extern struct fake_qp *fake_qps;
/* The status of the next request that is carried out (fake_status). */
extern enum ibv_wc_status fake_next_status;
/* Called when the device is opened, to replace operations; NULL: not called. */
extern void (*fake_other_ops)(struct ibv_context_ops *ops);
/* The vendor ID: by default an unknown one, so the provider expects system calls. */
extern uint32_t fake_vendor;

/* Takes the lock. */
unsigned fake_read_count(const unsigned *count);

/* All with the lock held. */
bool fake_fails(const char *name, int error);
void fake_count(int change);
struct ibv_context *fake_open(void);
struct fake_qp *fake_qp_by_number(uint32_t number);
void fake_qp_error(struct fake_qp *qp);
void fake_progress(struct fake_qp *qp);
void fake_leave_if_asked(const struct fake_qp *qp);
void fake_async_locked(enum ibv_event_type type, struct ibv_qp *qp);
void fake_async_of_srq_locked(struct ibv_srq *srq);
void fake_signal(int fd);
void fake_unsignal(int fd);
bool fake_is_iwarp(void);

void fake_count_cancellable(void);
bool fake_mem_is_good(uint32_t key, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		      int access);
bool fake_sges_are_good(const struct fake_qp *qp, const struct ibv_sge *sge, uint32_t count,
			int access);
uint64_t fake_sges_len(const struct ibv_sge *sge, uint32_t count);
void fake_cq_add(struct ibv_cq *ibv_cq, const struct ibv_wc *wc);
/* Removes the completions of a queue pair. */
void fake_cq_clean(struct ibv_cq *ibv_cq, uint32_t qp_num);
int fake_poll_cq(struct ibv_cq *ibv_cq, int count, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int fake_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct fake_work *fake_work_take(struct fake_work **queue);
void fake_work_free(struct fake_work *work);
void fake_complete(struct fake_qp *qp, struct ibv_cq *cq, struct fake_work *work,
		   enum ibv_wc_status status, uint32_t len, bool has_imm);
/*
 * Before an object is destroyed: drops its events that were not read, and waits until those that
 * were read are acknowledged. `events` counts both.
 */
void fake_drop_events(const void *object, const unsigned *events);
/* Does a queue pair use the protection domain? */
bool fake_pd_is_used(const struct ibv_pd *pd);
/* Flushes the SRQ buffer that the queue pair holds, if any. */
void fake_flush_held(struct fake_qp *qp);

/* fake_mw.c: memory windows; all with the lock held. */
void fake_mw_ops(struct ibv_context_ops *ops);
struct fake_mr *fake_mr_by_key(uint32_t key);
/* May a peer access that range with the key? */
bool fake_mw_is_good(uint32_t rkey, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		     int access);
bool fake_mw_is_in(const struct ibv_pd *pd);
/* The status of the bind, when it is the oldest request. */
enum ibv_wc_status fake_mw_status(struct fake_bind *bind, const struct ibv_pd *pd);
bool fake_bind_is_queued(const struct fake_mw *mw);
int fake_post_bind(struct ibv_qp *qp, const struct ibv_mw_bind *asked, struct fake_bind *bind);

#endif
