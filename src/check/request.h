// SPDX-License-Identifier: BSD-2-Clause
/*
 * What was posted and is not completed. Each request has a number, which takes the place of the
 * program's cookie on the way down, so that an event is matched with its request whatever cookies
 * the program uses. Other threads may end a request at any time without the lock, so it is looked up
 * by its number again.
 */
#ifndef CHECK_REQUEST_H
#define CHECK_REQUEST_H

#include <dat/udat.h>

#include <stdbool.h>
#include <stdint.h>

#include "check/memory.h"

#define CHECK_SEGMENTS 4u

struct check_object;
struct check_call;

enum check_kind { CHECK_SEND, CHECK_WRITE, CHECK_READ, CHECK_BIND, CHECK_RECV };

struct check_request;

/* In the order of posting. */
struct check_requests {
	struct check_request *first, *last;
	DAT_COUNT count;
	DAT_COUNT suppressed; /* of them: without an event, if they succeed */
	DAT_COUNT reads;      /* of them: RDMA Reads */
};

struct check_request {
	uint32_t index;
	uint32_t generation; /* changes when the request ends */
	uint8_t kind;	     /* enum check_kind */
	bool is_suppressed;
	bool is_orphan;	       /* its endpoint is gone; an event may still be in the EVD */
	uint8_t segment_count; /* of those kept below */
	DAT_DTO_COOKIE cookie; /* the program's */
	DAT_RMR_TRIPLET remote;
	const void *posted_at;	  /* the address in the program */
	struct check_object *ep;  /* NULL: a buffer of an SRQ */
	struct check_object *srq; /* NULL: it was posted to an endpoint */
	struct check_object *evd; /* that the event comes from; of an SRQ unknown: NULL */
	struct check_object *rmr;
	struct check_requests *queue; /* it is on */
	struct check_request *next, *previous;
	uint64_t orphaned;	  /* the number of its EVD's orphan */
	struct check_image image; /* of the buffer, when it was posted */
	DAT_LMR_TRIPLET segments[CHECK_SEGMENTS];
};

struct check_post;
typedef DAT_RETURN check_post_down(DAT_EP_HANDLE ep, const struct check_post *post,
				   DAT_DTO_COOKIE cookie);

/* What a post passes on. */
struct check_post {
	struct check_call *call;
	enum check_kind kind;
	DAT_COUNT segment_count;
	const DAT_LMR_TRIPLET *segments;
	const DAT_RMR_TRIPLET *remote; /* or NULL */
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	struct check_object *rmr; /* of a bind */
	const void *posted_at;	  /* libdat jumps to the provider, so our caller is the program */
	/* Calls the provider below by a call of <dat/opendat.h>. NULL: by that of the kind */
	check_post_down *post_down;
	uint64_t values[2]; /* the operands of such a call */
};

/* Where the program is in a call that is traced; NULL: it called us directly. */
extern __thread const void *check_traced_from;
extern bool check_is_traced; /* any call; set before the first one */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
/* with a sanitizer libdat may call us in place of a jump */
const void *check_program_frame(void);
#define CHECK_RETURN check_program_frame()
#else
#define CHECK_RETURN __builtin_extract_return_addr(__builtin_return_address(0))
#endif
#define CHECK_CALLER (check_is_traced && check_traced_from ? check_traced_from : CHECK_RETURN)

/*
 * Notes a request in front of the call that posts it, on an endpoint or an SRQ, and returns the
 * cookie for the provider: that of the program, if the request cannot be checked.
 */
DAT_DTO_COOKIE check_request_begin(struct check_object *owner, const struct check_post *post);
/* After that call: a refused request is forgotten, and the refusal explained. */
void check_request_posted(struct check_object *owner, const struct check_post *post,
			  DAT_DTO_COOKIE number, DAT_RETURN result);
/*
 * An event of the provider, taken from that EVD: restores the program's cookie and handles, and
 * tests what the completion shows.
 */
void check_request_event(struct check_call *call, struct check_object *evd, DAT_EVENT *event);

/* Notes the key of a bind that was posted with that number, if it is outstanding. Locked. */
void check_request_set_key_locked(DAT_RMR_COOKIE number, const struct check_object *rmr,
				  DAT_RMR_CONTEXT key);

/* The endpoint or SRQ is gone. Events of its requests may be in the EVDs. Locked. */
void check_requests_orphan_locked(struct check_object *ep);
void check_srq_orphan_locked(struct check_object *srq);
void check_requests_drop_locked(struct check_requests *queue);
/* Drops those orphans of an EVD that have a number up to this. */
void check_orphans_drop_locked(struct check_requests *queue, uint64_t until);
/* A request that uses the key, of this queue, with an event or without; NULL: none. Locked. */
const struct check_request *check_requests_use_locked(const struct check_requests *queue,
						      DAT_LMR_CONTEXT key, bool is_suppressed);
/*
 * The window whose key is in what a request of that endpoint sends, although its bind was posted to
 * another endpoint and has not completed; NULL: none. Locked.
 */
struct check_object *check_early_window_locked(const struct check_object *ep,
					       const struct check_request *request);

#endif
