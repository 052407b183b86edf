"""The worker's side of Workmate: decides, keeps and shows work with no network, and syncs when it can."""
