// SPDX-License-Identifier: BSD-2-Clause
/*
 * Helpers of the tests of connection set-up: a fixture with one adapter, a listener and two
 * endpoints, connection attempts with one argument changed, and checks that a call had no effect.
 */
#ifndef TESTS_CONN_UTIL_H
#define TESTS_CONN_UTIL_H

#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dt.h"

/* The timer of an attempt that is meant to expire. */
#define CONN_SHORT_US 150000u

/* --- fixture --- */

#define CONN_BUF_LEN 256

struct conn_fixture {
	struct dt_ia ia;
	struct dt_listener listener; /* a PSP with the consumer flag */
	struct dt_ep a, b;	     /* both UNCONNECTED at first */
	struct dt_buf buf;	     /* all privileges; in four parts, see CONN_*_AT */
	bool is_open;
};

int conn_setup(void **state);
/* Ordinary operation raises no asynchronous event (CONN-EVT-56): checked after every test. */
int conn_teardown(void **state);

#define conn_test(name) cmocka_unit_test_setup_teardown(name, conn_setup, conn_teardown)

/* --- attempts --- */

struct conn_args {
	DAT_IA_ADDRESS_PTR address;
	DAT_CONN_QUAL qual;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	const void *data;
	DAT_QOS qos;
	DAT_CONNECT_FLAGS flags;
};

/* Valid arguments, of which a test changes one. */
struct conn_args conn_args_of(struct conn_fixture *f);
DAT_RETURN conn_try(DAT_EP_HANDLE ep, const struct conn_args *args);
/* Starts an attempt that expires after timeout_us. */
void conn_start_timed(struct conn_fixture *f, DAT_EP_HANDLE ep, DAT_TIMEOUT timeout_us);
DAT_EVENT conn_request_event(DAT_EVD_HANDLE evd);
DAT_CR_HANDLE conn_request(DAT_EVD_HANDLE evd);
DAT_CR_PARAM conn_cr_query(DAT_CR_HANDLE cr);
DAT_EP_PARAM conn_ep_query(DAT_EP_HANDLE ep);
/* Connects a to the fixture's listener, which accepts with b. */
void conn_link(struct conn_fixture *f, struct dt_ep *a, struct dt_ep *b);
/* The attempt of ep must fail with that event, and no other event may follow. */
void conn_expect_failure(struct dt_ep *ep, DAT_EVENT_NUMBER number);

/* --- states --- */

void conn_await_state(DAT_EP_HANDLE ep, DAT_EP_STATE state);
/* Nothing is queued on any EVD of the endpoint. */
void conn_no_events(struct dt_ep *ep);
void conn_stays_quiet(struct dt_ep *ep);
bool conn_recv_is_idle(DAT_EP_HANDLE ep);

/* --- data --- */

enum conn_at {
	CONN_A_SENDS_AT = 0,
	CONN_B_SENDS_AT = CONN_BUF_LEN,
	CONN_A_RECEIVES_AT = 2 * CONN_BUF_LEN,
	CONN_B_RECEIVES_AT = 3 * CONN_BUF_LEN,
};

void conn_post_recv(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t at, uint64_t cookie);
void conn_post_send(DAT_EP_HANDLE ep, const struct dt_buf *buf, size_t at, uint64_t cookie);
/* Transfers a message each way between two endpoints that are connected to each other. */
void conn_transfer(struct conn_fixture *f, struct dt_ep *a, struct dt_ep *b);
/* Receives with these cookies were flushed, and nothing else happened on the recv EVD. */
void conn_expect_flushes(struct dt_ep *ep, uint64_t first, uint64_t count);

/* --- refusals --- */

/* What a consumer can query of an endpoint, to compare before and after a call without effect. */
struct conn_snapshot {
	DAT_EP_STATE state;
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_PARAM param;
};

struct conn_snapshot conn_snapshot(DAT_EP_HANDLE ep);
/* State, idle flags and configuration are unchanged; no event is queued. */
void conn_check_unchanged(struct dt_ep *ep, const struct conn_snapshot *before);
/*
 * The call must refuse NULL, a value that was never issued, an object of another type and this
 * freed one, with DAT_INVALID_HANDLE and that subtype.
 */
void conn_refuses_handles(DAT_RETURN (*call)(DAT_HANDLE handle, void *arg), void *arg,
			  DAT_HANDLE other_type, DAT_HANDLE freed, DAT_RETURN_SUBTYPE subtype);
DAT_EVD_HANDLE conn_freed_evd(struct dt_ia *ia);
DAT_EP_HANDLE conn_freed_ep(struct dt_ia *ia);
/* A CR that was rejected. */
DAT_CR_HANDLE conn_freed_cr(struct conn_fixture *f);

/* --- lack of resources --- */

/* Lets no descriptor be opened until conn_descriptors_give. */
struct rlimit conn_descriptors_take(void);
void conn_descriptors_give(const struct rlimit *old);
/* Lets no file, memory files included, become larger until conn_files_free. */
struct rlimit conn_files_limit(rlim_t bytes);
void conn_files_free(const struct rlimit *old);

/* --- addresses --- */

/* Same family and address; ports do not count. */
void conn_check_same_address(const struct sockaddr *a, const struct sockaddr *b);

union conn_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A changeable copy of the adapter's own address. */
union conn_address conn_own_address(struct dt_ia *ia);
DAT_IA_ADDRESS_PTR conn_dat_address(union conn_address *address);

#endif
