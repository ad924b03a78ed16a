package proposals

import (
	"koine/internal/systemgraph"
	"koine/kg"
)

// The classes and properties of proposals and reviews.
var (
	classProposal = systemgraph.Property("Proposal")
	classReview   = systemgraph.Property("Review")

	propStatus        = systemgraph.Property("status")
	propAuthor        = systemgraph.Property("author")    // the principal
	propActor         = systemgraph.Property("actor")     // the agent that it acted for
	propAuthority     = systemgraph.Property("authority") // JSON: the rights of the author
	propCreated       = systemgraph.Property("createdAt")
	propExpires       = systemgraph.Property("expiresAt")
	propRequired      = systemgraph.Property("requiredApprovals")
	propReviewerRole  = systemgraph.Property("reviewerRole")
	propRule          = systemgraph.Property("rule")    // that held the update
	propReason        = systemgraph.Property("reason")  // for the review
	propPatches       = systemgraph.Property("patches") // a numbered piece of the JSON
	propPatchCount    = systemgraph.Property("patchCount")
	propAbout         = systemgraph.Property("about") // a place: predicate and graph of patches
	propJustification = systemgraph.Property("justification")
	propTask          = systemgraph.Property("taskId")
	propSession       = systemgraph.Property("sessionId")
	propMessage       = systemgraph.Property("messageId")
	propChannel       = systemgraph.Property("heldChannel")      // of a held message: its channel
	propRecipient     = systemgraph.Property("heldRecipient")    // of a held message: its address
	propExpected      = systemgraph.Property("expectedRevision") // set by the author
	propReview        = systemgraph.Property("review")           // to a review
	propEnded         = systemgraph.Property("endedAt")
	propConflict      = systemgraph.Property("conflict")  // reason for which it could not be applied
	propAppliedIn     = systemgraph.Property("appliedIn") // the revision

	propReviewer      = systemgraph.Property("reviewer")
	propReviewerActor = systemgraph.Property("reviewerActor")
	propDecision      = systemgraph.Property("decision")
	propComment       = systemgraph.Property("comment")
	propReviewed      = systemgraph.Property("reviewedAt")

	rdfType = kg.IRI(kg.RDFType)
)

// graphOf returns the graph of a proposal, which is also its subject.
func graphOf(id string) kg.Term { return kg.IRI(kg.ProposalGraphPrefix + id) }

// pendingOf returns the graph with the statements that the proposal would add.
func pendingOf(id string) kg.Term { return kg.IRI(kg.PendingGraphPrefix + id) }
