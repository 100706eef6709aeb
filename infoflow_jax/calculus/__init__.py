"""What a layered transformer can retrieve: targets as comparison trees, information sets, costs."""
