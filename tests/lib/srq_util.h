// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the tests of shared receive queues: a bench with one SRQ, pairs of endpoints whose
 * receiving side uses it, and messages of eight bytes that name the sender. Buffer number n of the
 * bench is slot n of y and has the cookie n, so that a completion shows which buffer was used.
 */
#ifndef TESTS_SRQ_UTIL_H
#define TESTS_SRQ_UTIL_H

#include "conf.h"
#include "dto_util.h"

#define SRQ_PAIRS 8
#define SRQ_SLOT 64u
#define SRQ_SLOTS (RIG_LEN / SRQ_SLOT)

struct bench {
	struct dt_ia ia;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr;      /* of the endpoints of the SRQ */
	DAT_EP_ATTR from_attr; /* of those that send to them */
	struct dt_buf x, y;    /* sent from, received into */
	struct dt_ep from[SRQ_PAIRS], to[SRQ_PAIRS];
	unsigned pairs;
	unsigned sent;	/* messages so far: the next one's slot of x */
	bool has_async; /* asynchronous events may be left */
};

/* --- queues --- */

DAT_SRQ_HANDLE srq_make(struct dt_ia *ia, DAT_COUNT dtos, DAT_COUNT iov);
DAT_SRQ_PARAM srq_query(DAT_SRQ_HANDLE srq);
void srq_counts(DAT_SRQ_HANDLE srq, DAT_COUNT available, DAT_COUNT outstanding);
/* Endpoints take buffers until that many are left. */
void srq_until(DAT_SRQ_HANDLE srq, DAT_COUNT available);
void srq_until_outstanding(DAT_SRQ_HANDLE srq, DAT_COUNT outstanding);
DAT_RETURN srq_post(DAT_SRQ_HANDLE srq, DAT_LMR_TRIPLET seg, uint64_t cookie);
DAT_RETURN srq_post_empty(DAT_SRQ_HANDLE srq, uint64_t cookie);

/* --- endpoints --- */

/*
 * Does the adapter show which buffers of an SRQ an endpoint holds? If not, it has no high
 * watermarks (EP-WMARK-21), and dat_ep_recv_query returns DAT_VALUE_UNKNOWN (EP-RECVQ-14).
 */
bool srq_shows_held(const struct dt_ia *ia);
/* May an endpoint and its SRQ have different zones (EP-CRSRQ-17)? */
bool srq_takes_other_zones(const struct dt_ia *ia);
/* The endpoint holds that many buffers, or dat_ep_recv_query returns DAT_VALUE_UNKNOWN twice. */
void srq_expect_held(const struct dt_ia *ia, DAT_EP_HANDLE ep, DAT_COUNT count);
/* EP-CRSRQ-18: an endpoint of that zone is refused. */
void srq_refuses_zone(struct dt_ia *ia, DAT_PZ_HANDLE pz, DAT_SRQ_HANDLE srq,
		      const DAT_EP_ATTR *attr);

/* Makes three EVDs and an endpoint of the SRQ. */
void srq_ep_make(struct dt_ia *ia, DAT_PZ_HANDLE pz, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
		 struct dt_ep *ep_out);
void srq_ep_attr(struct dt_ia *ia, DAT_EP_ATTR *attr_out);

/* --- the bench --- */

void bench_begin(struct bench *bench, DAT_COUNT dtos);
void bench_add(struct bench *bench, unsigned pairs);
int bench_setup(void **state);
int bench_teardown(void **state);

/* A test whose state is a bench with an SRQ of 16 entries and no endpoint. */
#define bench_test(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

/* --- messages --- */

DAT_LMR_TRIPLET bench_slot(struct bench *bench, uint64_t number);
/* Posts buffer number n of the bench to its SRQ. */
void bench_give(struct bench *bench, uint64_t number);
void bench_give_many(struct bench *bench, uint64_t first, unsigned count);
/* Sends the number to the SRQ's endpoint of that pair. */
void bench_send(struct bench *bench, unsigned pair, uint64_t number);
/* All that was sent has arrived and waits: no thread of the library has anything left to do. */
void bench_await_line(struct bench *bench);
uint64_t bench_read(struct bench *bench, uint64_t cookie);
/* The completion of a message of eight bytes; returns which buffer it is in. */
uint64_t bench_check_event(const DAT_EVENT *event, DAT_EP_HANDLE ep);
/* The next message of that pair, which must be this number; returns which buffer it is in. */
uint64_t bench_receive(struct bench *bench, unsigned pair, uint64_t number);
/* Sends one message over each connected pair, with the buffer of cookie 900. */
void bench_works(struct bench *bench);
/* Disconnects a pair and takes both events. */
void bench_cut(struct bench *bench, unsigned pair);

/* --- a message on its way --- */

/*
 * Large enough that copying takes a while, in which a test can observe that the endpoint holds the
 * buffer (see catch_try).
 */
#define CATCH_LEN (48u << 20)

struct catch
{
	struct bench *bench;
	struct dt_buf from, to;
	size_t len; /* of the message: CATCH_LEN, or what the adapter can send */
	unsigned pair;
};

void catch_begin(struct catch *c, struct bench *bench, unsigned pair);
void catch_end(struct catch *c);
/*
 * Sends a large message into the only buffer (cookie 77) of the SRQ. Returns true if the endpoint
 * held the buffer while the message was not complete. Try again otherwise. On a device that does
 * not report what an endpoint holds, this checks the first byte of the buffer.
 */
bool catch_try(struct catch *c);
/* The message was already placed: dequeues its completions. */
void catch_missed(struct catch *c);

#define CATCH_TRIES 100

#endif
